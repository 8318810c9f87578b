df = tables[@table@]
column = @column@
counts = df[column].astype(str).where(df[column].notna()).value_counts()
share = counts / counts.sum() * 100
shown = counts.head(12)[::-1]
plt.figure(figsize=(8, 1.5 + 0.35 * len(shown)))
plt.barh(shown.index, shown.values)
for place, value in enumerate(shown.values):
    plt.text(value, place, f" {value}", va="center")
plt.xlabel(@axis@)
plt.title(@title@)
plt.tight_layout()
plt.show()
print(f"- @finding@")
