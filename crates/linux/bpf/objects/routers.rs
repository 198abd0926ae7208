&[
    ("abc", include_bytes!("router-abc.bpf.o")),
    ("rcp", include_bytes!("router-rcp.bpf.o")),
]
