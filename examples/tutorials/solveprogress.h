/* A line on stderr that tells how far a solve is */
#pragma once

#include <petscsys.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

/* What an entry of the history holds before the solver has written it: no norm is negative */
constexpr PetscReal NOT_YET = -1.0;

/* Shows the line, if `on`, from 2 s after it was made until its end, which wipes it away */
class Progress {
public:
  Progress(PetscBool on, const std::string &name, const PetscReal history[], size_t size);
  ~Progress();
  Progress(const Progress &)            = delete;
  Progress &operator=(const Progress &) = delete;

private:
  void Watch(const std::string &name, const PetscReal history[], size_t size);

  std::mutex              mutex;
  std::condition_variable changed;
  bool                    over = false;
  std::thread             thread;
};
