"""Nsight Systems: one reading of its exports, from SQLite of any schema and from parquet, and of its printed reports."""
