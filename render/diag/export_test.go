package diag

import (
	"fmt"
	"slices"
	"strings"
)

const documentHead = `# Diagnostics

Every fault, warning and note that weir reports has a code, which stays the same across releases. This is the list of them; it is
generated from ` + "`render/diag/rules.go`" + ` by ` + "`go test ./render/diag -update`" + `. ` + "`weir explain CODE`" + ` prints one of them.

An *error* stops the pool or the target that it is about; a *warning* and a note (*info*) do not.
`

// Document returns the list of codes as Markdown.
func Document() string {
	var b strings.Builder
	b.WriteString(documentHead)
	cell := strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;")
	for _, g := range groups {
		fmt.Fprintf(&b, "\n## %s\n\n| Code | Severity | Meaning | What to do |\n| --- | --- | --- | --- |\n", g.title)
		rules := slices.Clone(g.rules)
		slices.SortFunc(rules, func(a, b rule) int { return strings.Compare(a.code, b.code) })
		for _, r := range rules {
			fmt.Fprintf(&b, "| <a id=\"%s\"></a>`%s` | %s | %s | %s |\n", r.code, r.code, r.rule().Levels(), cell.Replace(r.short), cell.Replace(r.help))
		}
	}
	return b.String()
}
