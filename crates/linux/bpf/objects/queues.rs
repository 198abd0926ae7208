&[
    ("pi2", include_bytes!("router-pi2.bpf.o")),
    ("pie", include_bytes!("router-pie.bpf.o")),
    ("step", include_bytes!("router-step.bpf.o")),
]
