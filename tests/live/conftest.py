"""Nothing here is collected unless it is named: ``make test`` needs neither root nor a kernel."""

collect_ignore_glob = ["test_*.py"]
