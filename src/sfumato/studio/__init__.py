"""The studio: one page on this machine where a study is written, turned and published. Needs `sfumato[studio]`."""
