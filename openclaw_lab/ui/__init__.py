"""What a person sees: charts. The only package that imports matplotlib."""
