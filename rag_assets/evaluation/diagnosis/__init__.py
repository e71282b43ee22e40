"""Diagnosis: a failed case is generated again with one thing changed, beside a control."""
