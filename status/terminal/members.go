package terminal

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/weir-gitops/weir/status/members"
)

// Members prints the members that share the work, and the owner of each scope and source.
func (p Printer) Members(v members.View, now time.Time) {
	var rows [][]tableCell
	far := map[string]bool{}
	for _, m := range v.Far() {
		far[m.Name] = true
	}
	for _, m := range v.Members {
		state := "alive"
		if m.Draining {
			state = "draining"
		}
		if m.Answers {
			state += ", answers"
		}
		said := plain(state)
		if len(m.Differs) > 0 {
			said = tableCell{state + ", " + m.DifferText(), red}
		}
		clock := plain(clockOf(m))
		if far[m.Name] {
			clock.color = red
		}
		owns := counted(m.Scopes, "scope")
		if m.Sources > 0 {
			owns += ", " + counted(m.Sources, "source")
		}
		rows = append(rows, []tableCell{plain(m.Name), said, plain(owns), clock, plain(cell(m.Version)), plain(cell(m.Address))})
	}
	if len(rows) > 0 {
		p.table([]column{{"MEMBER", 0}, {"STATE", 0}, {"OWNS", 0}, {"CLOCK", 1}, {"VERSION", 2}, {"PAGE", 3}}, rows)
	} else {
		p.line("No member is alive.")
	}
	if v.Late() {
		p.line(fmt.Sprintf("The engine is slow: the member that answers read the records %.1fs ago, and writes nothing meanwhile.", v.Engine.Lag))
	}
	if len(v.Owned) == 0 {
		return
	}
	rows = nil
	for _, o := range v.Owned {
		owner := plain(o.Owner)
		if o.Owner == "" {
			owner = tableCell{"nobody", red}
			if o.Last != "" {
				owner.text += ", before " + o.Last
			}
		}
		since := "-"
		if !o.Since.IsZero() {
			since = ago(now.Sub(o.Since))
		}
		rows = append(rows, []tableCell{plain(o.Key), owner, plain(since), plain(cell(strings.Join(o.Targets, ", ")))})
	}
	p.line()
	p.table([]column{{"SCOPE OR SOURCE", 0}, {"OWNER", 0}, {"SINCE", 1}, {"TARGETS", 0}}, rows)
}

func clockOf(m members.Member) string {
	switch {
	case m.Clock == nil:
		return "-"
	case math.Abs(*m.Clock) < 0.1:
		return "the same"
	case *m.Clock < 0:
		return (time.Duration(-*m.Clock*10) * time.Second / 10).String() + " behind"
	default:
		return (time.Duration(*m.Clock*10) * time.Second / 10).String() + " ahead"
	}
}

func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
