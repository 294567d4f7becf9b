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
	// rank says in which order columns are left out where the terminal is too
	// narrow, the highest first; those of rank 0 stay.
	rank int
}

// tableCell is a text and its colour; none for the terminal's own.
type tableCell struct{ text, color string }

func plain(s string) tableCell { return tableCell{text: s} }

// narrowest is the least width, in characters, to which a column is cut.
const narrowest = 10

// table prints rows in columns. On a terminal it fits its width: columns are left
// out, then the widest texts are cut. Elsewhere nothing is cut.
func (p Printer) table(columns []column, rows [][]tableCell) {
	for _, r := range rows {
		for i := range r {
			r[i].text = wording.Clean(r[i].text) // any server may have answered with it
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

// fitting leaves columns out and narrows others until all fit.
func fitting(columns []column, shown, widths []int, width int) []int {
	total := func() int {
		n := 2 * (len(shown) - 1)
		for _, i := range shown {
			n += widths[i]
		}
		return n
	}
	// The last column says most; it may be cut to a fair part before another goes.
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

// cut shortens a text to a width in characters; the end becomes "…".
func cut(s string, width int) string {
	if width < 1 || utf8.RuneCountInString(s) <= width {
		return s
	}
	return strings.TrimRight(string([]rune(s)[:width-1]), " ") + "…"
}
