package terminal

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weir-gitops/weir/status/wording"
)

// column is one column of a table.
type column struct {
	head string
	// rank determines the order in which columns are omitted if the terminal is too narrow, the highest
	// first. Columns with rank 0 are never omitted.
	rank int
}

// tableCell is a text and its colour. An empty colour means the default colour of the terminal.
type tableCell struct{ text, color string }

func plain(s string) tableCell { return tableCell{text: s} }

// narrowest is the minimum width of a truncated column, in characters.
const narrowest = 10

// table prints rows in columns. On a terminal it fits the width: it omits columns first, and then truncates
// the longest texts. Otherwise, nothing is truncated.
func (p Printer) table(columns []column, rows [][]tableCell) {
	for _, r := range rows {
		for i := range r {
			r[i].text = wording.Clean(r[i].text) // the text may come from any server
		}
	}
	shown := make([]int, len(columns))
	widths := make([]int, len(columns))
	for i, c := range columns {
		shown[i], widths[i] = i, utf8.RuneCountInString(c.head)
		for _, r := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(r[i].text))
		}
	}
	if p.Width > 0 && !p.Full {
		shown = fitting(columns, shown, widths, p.Width)
	}
	line := func(cells func(int) tableCell) {
		parts := make([]string, 0, len(shown))
		for _, i := range shown {
			c := cells(i)
			text := cut(c.text, widths[i])
			gap := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(text)))
			parts = append(parts, p.paint(c.color, text)+gap)
		}
		p.line(strings.Join(parts, "  "))
	}
	line(func(i int) tableCell { return tableCell{columns[i].head, bold} })
	for _, r := range rows {
		line(func(i int) tableCell { return r[i] })
	}
}

// fitting omits and narrows columns until the table fits into width, the columns with the highest rank
// first. It changes widths, and returns the shown columns.
func fitting(columns []column, shown, widths []int, width int) []int {
	total := func() int {
		n := 2 * (len(shown) - 1)
		for _, i := range shown {
			n += widths[i]
		}
		return n
	}
	// The last column is the most informative. It is narrowed to a fair share before another column is
	// omitted.
	last := len(columns) - 1
	fair := max(narrowest, width/4)
	for total()-max(0, widths[last]-fair) > width {
		out := -1
		for at, i := range shown {
			if columns[i].rank > 0 && (out < 0 || columns[i].rank > columns[shown[out]].rank) {
				out = at
			}
		}
		if out < 0 {
			break
		}
		shown = slices.Delete(shown, out, out+1)
	}
	for total() > width {
		widest := shown[0]
		for _, i := range shown {
			if widths[i] > widths[widest] || i == last && widths[i] > fair {
				widest = i
			}
		}
		if widths[widest] <= narrowest {
			break
		}
		widths[widest]--
	}
	return shown
}

// cut truncates a text to a width in characters, and ends it with "…".
func cut(s string, width int) string {
	if width < 1 || utf8.RuneCountInString(s) <= width {
		return s
	}
	return strings.TrimRight(string([]rune(s)[:width-1]), " ") + "…"
}
