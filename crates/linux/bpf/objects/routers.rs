&[
    ("scone", include_bytes!("router-scone.bpf.o")),
    ("csig", include_bytes!("router-csig.bpf.o")),
    ("abc", include_bytes!("router-abc.bpf.o")),
    ("rcp", include_bytes!("router-rcp.bpf.o")),
]
