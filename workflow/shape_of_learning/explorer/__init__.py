"""All results in one page that needs no server and no network."""
