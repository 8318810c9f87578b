df = tables[@table@]
columns = @columns@
wide = min(3, len(columns))
high = -(-len(columns) // wide)
plt.figure(figsize=(3.2 * wide + 1, 2.6 * high + 0.6))
for place, column in enumerate(columns, 1):
    values = df[column].dropna().astype(float)
    values = values[np.isfinite(values)]
    plt.subplot(high, wide, place)
    plt.hist(values, bins=min(30, max(5, int(len(values) ** 0.5))))
    plt.axvline(values.median(), color="black", linewidth=1, linestyle="--")
    plt.title(column, fontsize=9)
plt.suptitle(@title@)
plt.tight_layout()
plt.show()
for column in columns:
    values = df[column].dropna().astype(float)
    low, high = values.quantile(0.25), values.quantile(0.75)
    spread = 1.5 * (high - low)
    outliers = int(((values < low - spread) | (values > high + spread)).sum()) if spread > 0 else 0
    print(f"- @finding@")
