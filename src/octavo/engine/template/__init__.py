"""Chat templates that come with requests run in a process of their own, which can be killed."""
