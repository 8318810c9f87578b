df = tables[@table@]
columns = @columns@
table = df[columns].astype(float).corr()
plt.figure(figsize=(1.8 + 0.7 * len(columns), 1.4 + 0.6 * len(columns)))
plt.imshow(table, cmap="RdBu_r", vmin=-1, vmax=1)
plt.colorbar(shrink=0.8)
plt.xticks(range(len(columns)), columns, rotation=45, ha="right")
plt.yticks(range(len(columns)), columns)
for row in range(len(columns)):
    for column in range(len(columns)):
        value = table.iloc[row, column]
        plt.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=8, color="white" if abs(value) > 0.6 else "black")
plt.title(@title@)
plt.tight_layout()
plt.show()
print(f"- @finding@")
