df = tables[@table@]
date, columns = @date@, @columns@
series = df.dropna(subset=[date]).set_index(date).sort_index()[columns]
days = max((series.index.max() - series.index.min()).days, 1)
period = "D" if days <= 92 else "W-MON" if days <= 730 else "MS" if days <= 3650 else "YS"
if series.index.normalize().nunique() <= 60:
    means = series.groupby(series.index.normalize()).mean().dropna(how="all")
else:
    means = series.resample(period, label="left", closed="left").mean().dropna(how="all")
    # A period is named by its first day, or by the first day that there is.
    means.index = means.index.where(means.index >= series.index.min().normalize(), series.index.min().normalize())
plt.figure(figsize=(9, 2.2 + 1.6 * len(columns)))
for place, column in enumerate(columns, 1):
    plt.subplot(len(columns), 1, place)
    plt.plot(means.index, means[column], marker="o" if len(means) < 40 else None)
    plt.ylabel(column)
    plt.grid(alpha=0.3)
plt.suptitle(@title@)
plt.tight_layout()
plt.show()
for column in columns:
    line = means[column].dropna()
    if len(line) > 1:
        high, low = line.idxmax(), line.idxmin()
        print(f"- @finding@")
