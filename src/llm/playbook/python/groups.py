df = tables[@table@]
group, column = @group@, @column@
groups = df.dropna(subset=[column]).groupby(df[group].astype(str))[column]
means = groups.mean().sort_values(ascending=False).head(12)
plt.figure(figsize=(8, 4.5))
plt.boxplot([groups.get_group(name).to_numpy(dtype=float) for name in means.index])
plt.xticks(range(1, len(means) + 1), [str(name)[:20] for name in means.index], rotation=30 if len(means) > 5 else 0)
plt.ylabel(column)
plt.title(@title@)
plt.tight_layout()
plt.show()
print(f"- @finding@")
