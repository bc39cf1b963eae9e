"""The solver of LASVM for several classes: many binary problems over one store."""
