//! Experiments that reproduce published figures and compare, with CSV, SVG and HTML reports.
