#!/usr/bin/env python3
"""plot.py FILE.svg ITERATIONS...: is it XML, with a curve of ITERATIONS + 1 points within the picture for each, which begins left at the top and goes to the right?"""
import sys
import xml.etree.ElementTree as tree

svg = tree.parse(sys.argv[1]).getroot()
name = "{http://www.w3.org/2000/svg}"
assert svg.tag == name + "svg", svg.tag
width, height = (float(number) for number in svg.get("viewBox").split()[2:])
curves = [[tuple(map(float, point.split(","))) for point in line.get("points").split()] for line in svg.iter(name + "polyline")]
assert [len(curve) - 1 for curve in curves] == [int(number) for number in sys.argv[2:]], [len(curve) for curve in curves]
for curve in curves:
    assert all(0 <= x <= width and 0 <= y <= height for x, y in curve)
    assert all(a[0] < b[0] for a, b in zip(curve, curve[1:])), "times do not increase"
    assert curve[-1][1] > curve[0][1], "the residual does not fall"
texts = ["".join(text.itertext()) for text in svg.iter(name + "text")]
assert any("time of the solve" in text for text in texts) and any("residual norm" in text for text in texts)
assert len({line.get("stroke") for line in svg.iter(name + "polyline")}) == len(curves), "two curves of one colour"
