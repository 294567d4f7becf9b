package page

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/report"
)

// The pictures of the page are inline SVG with coordinates that are computed here. Each has a text
// alternative that is sufficient without the picture.

// level shows the size of a pool as a bar: its ready, desired, minimum and maximum number of instances.
type level struct {
	Words string
	Mark  string
	// Positions are relative to a box of levelWidth.
	Ready, Wanted, Least string
	// Missing is the width of the part between ready and desired.
	MissingAt, Missing string
	// Cells is a path with the lines between instances, if there is enough room.
	Cells string
}

const (
	levelWidth = 160
	// mostCells is the maximum number of instances that are drawn individually.
	mostCells = 24
)

// poolLevel draws the size of a pool. mark is its colour.
func poolLevel(p plan.PoolStatus, mark report.Phase) level {
	ready, wanted, least, most := int(p.ReadyReplicas), int(p.DesiredReplicas), int(p.MinReplicas), int(p.MaxReplicas)
	end := max(most, wanted, ready, 1)
	at := func(n int) string { return coordinate(float64(n) / float64(end) * levelWidth) }
	l := level{Mark: string(mark), Ready: at(ready), Wanted: at(wanted), Words: fmt.Sprintf("%d of %d ready", ready, wanted)}
	if most > 0 {
		l.Least = at(least)
		l.Words += fmt.Sprintf(", at least %d, at most %d", least, most)
	}
	if wanted > ready {
		l.MissingAt, l.Missing = at(ready), at(wanted-ready)
	}
	if end > 1 && end <= mostCells {
		var b strings.Builder
		for n := 1; n < end; n++ {
			fmt.Fprintf(&b, "M%s 0v20", at(n))
		}
		l.Cells = b.String()
	}
	return l
}

// coordinate formats a length with visible precision.
func coordinate(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

// mosaic shows a target's pools as small symbols, the ones that need attention first. Each mark has its own
// shape and colour.
type mosaic struct {
	Words string
	Parts []mosaicPart
	Width int
	More  int // pools that are not drawn
}

type mosaicPart struct{ Mark, Path string }

const mostSigns = 72

// signs maps marks to shapes in a box of ten by ten.
var signs = map[string]string{
	string(report.Failing):   "M%d 5l4-4 4 4-4 4z",
	string(report.Moving):    "M%d 9l4-8 4 8z",
	string(report.Held):      "M%d 1h3v8h-3zm5 0h3v8h-3z",
	string(report.Suspended): "M%d 1h3v8h-3zm5 0h3v8h-3z",
	string(report.Waiting):   "M%d 4h8v2h-8z",
	string(report.Converged): "M%d 1h8v8h-8z",
}

// mosaicOf draws the pools of a target, given their number by mark. It draws at most mostSigns, and counts
// the remaining ones in More.
func mosaicOf(counts map[string]int) mosaic {
	var m mosaic
	var words []string
	total := 0
	for _, p := range attention {
		mark := string(p)
		n := counts[mark]
		if n == 0 {
			continue
		}
		words = append(words, fmt.Sprintf("%d %s", n, mark))
		total += n
		var b strings.Builder
		for ; n > 0 && m.Width < mostSigns; n-- {
			fmt.Fprintf(&b, signs[mark], m.Width*11+1)
			m.Width++
		}
		if b.Len() > 0 {
			m.Parts = append(m.Parts, mosaicPart{mark, b.String()})
		}
	}
	m.Words, m.More = strings.Join(words, ", "), total-m.Width
	m.Width *= 11
	return m
}

// share is a bar whose length shows a number, in proportion to other numbers.
type share struct {
	Name, Note string
	Count      int
	Width      string // relative to a box of shareWidth
	Parts      []sharePart
	Words      string
	Current    bool
}

// sharePart is the part of a bar in one state.
type sharePart struct{ Mark, At, Width string }

const shareWidth = 200

// sharesOf returns bars of counted instances, grouped by the key that by returns.
func sharesOf(list []plan.InstanceCount, order []string, by func(plan.InstanceCount) string) []share {
	total := map[string]int{}
	marks := map[string]map[string]int{}
	most := 1
	for _, c := range list {
		key := by(c)
		if marks[key] == nil {
			marks[key] = map[string]int{}
		}
		total[key] += int(c.Count)
		marks[key][instanceMark(c.State, c.Health)] += int(c.Count)
		most = max(most, total[key])
	}
	var out []share
	for _, key := range order {
		s := share{Name: key, Count: total[key]}
		at := 0
		var words []string
		for _, p := range instanceMarks {
			n := marks[key][p.mark]
			if n == 0 {
				continue
			}
			s.Parts = append(s.Parts, sharePart{p.mark, coordinate(float64(at) / float64(most) * shareWidth), coordinate(float64(n) / float64(most) * shareWidth)})
			at += n
			words = append(words, fmt.Sprintf("%d %s", n, p.word))
		}
		s.Words = strings.Join(words, ", ")
		out = append(out, s)
	}
	return out
}

var instanceMarks = []struct{ mark, word string }{
	{string(report.Converged), "in service"}, {string(report.Moving), "starting or leaving"}, {string(report.Failing), "unhealthy"},
}

func instanceMark(state, health string) string {
	switch {
	case health != "" && health != "Healthy":
		return string(report.Failing)
	case state != "InService":
		return string(report.Moving)
	}
	return string(report.Converged)
}
