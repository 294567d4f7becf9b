package forecast

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/simulate/timeline"
	"github.com/weir-gitops/weir/status/wording"
)

// The picture draws the machines over time, as a separate document or as part of a page. Its colours are
// attributes, so it needs no style sheet, and it has its own background, so that it looks the same
// everywhere. A page can restyle the classes.
const (
	pictureWidth = 760
	chartLeft    = 56
	chartRight   = 744
	chartTop     = 52
	chartBottom  = 226
	mostWaves    = 24
)

// layer is one of the stacked layers of the picture, from the bottom up.
type layer struct {
	name, class, colour string
	of                  func(timeline.Point) int32
}

var layers = []layer{
	{"new", "new", "#2563eb", func(p timeline.Point) int32 { return p.New }},
	{"as before", "before", "#94a3b8", func(p timeline.Point) int32 { return p.Old }},
	{"starting", "starting", "#93c5fd", func(p timeline.Point) int32 { return p.Starting }},
	{"ending", "ending", "#fca5a5", func(p timeline.Point) int32 { return p.Ending }},
}

// SVG draws a timeline: machines by version over time, the desired size, the starts of waves, and what
// waits.
func SVG(t *timeline.Timeline) string {
	var b strings.Builder
	title, notes := Headline(t), notes(t)
	height := chartBottom + 58 + 16*len(notes)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" class="forecast" role="img" font-family="system-ui, sans-serif" font-size="12">`, pictureWidth, height, pictureWidth, height)
	fmt.Fprintf(&b, "\n<title>%s</title>\n", wording.HTML(title))
	fmt.Fprintf(&b, `<rect class="ground" width="%d" height="%d" rx="6" fill="#ffffff"/>`+"\n", pictureWidth, height)
	for i, line := range broken(title, 104, 2) {
		fmt.Fprintf(&b, `<text class="ink" x="16" y="%d" fill="#0f172a" font-weight="600">%s</text>`+"\n", 22+16*i, wording.HTML(line))
	}
	d := newDrawing(t)
	d.axes(&b)
	d.machines(&b)
	d.waves(&b)
	d.legend(&b)
	for i, line := range notes {
		fmt.Fprintf(&b, `<text class="label" x="16" y="%d" fill="#334155">%s</text>`+"\n", chartBottom+58+16*i, wording.HTML(wording.Shorten(line, 100)))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

type drawing struct {
	t    *timeline.Timeline
	end  float64
	most float64
}

func newDrawing(t *timeline.Timeline) drawing {
	d := drawing{t: t, end: math.Max(t.End*1.02, 60), most: 1}
	for _, p := range t.Points {
		d.most = math.Max(d.most, math.Max(float64(p.Desired), float64(p.Old+p.New+p.Starting+p.Ending)))
	}
	d.most = math.Ceil(d.most * 1.08)
	return d
}

func (d drawing) x(at float64) string {
	return coordinate(chartLeft + math.Min(1, at/d.end)*(chartRight-chartLeft))
}

func (d drawing) y(n float64) string {
	return coordinate(chartBottom - n/d.most*(chartBottom-chartTop))
}

func coordinate(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

// steps are round intervals between time marks, in seconds.
var steps = []float64{10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400, 172800, 604800}

// axes draws the grid with the labels of time and of the number of machines.
func (d drawing) axes(b *strings.Builder) {
	step := steps[len(steps)-1]
	for _, s := range steps {
		if d.end/s <= 8 {
			step = s
			break
		}
	}
	for at := 0.0; at <= d.end; at += step {
		fmt.Fprintf(b, `<path class="grid" d="M%s %dV%d" stroke="#e2e8f0"/><text class="label" x="%s" y="%d" fill="#475569" text-anchor="middle">%s</text>`+"\n", d.x(at), chartTop, chartBottom, d.x(at), chartBottom+16, clock(at))
	}
	unit := math.Max(1, math.Pow(10, math.Floor(math.Log10(d.most))))
	for d.most/unit < 3 && unit > 1 {
		unit /= 2
	}
	for n := 0.0; n <= d.most; n += math.Ceil(unit) {
		fmt.Fprintf(b, `<path class="grid" d="M%d %sH%d" stroke="#e2e8f0"/><text class="label" x="%d" y="%s" fill="#475569" text-anchor="end" dominant-baseline="middle">%.0f</text>`+"\n", chartLeft, d.y(n), chartRight, chartLeft-6, d.y(n), n)
	}
}

// machines draws the stacked layers, and the desired size above them.
func (d drawing) machines(b *strings.Builder) {
	if len(d.t.Points) == 0 {
		return
	}
	under := make([]float64, len(d.t.Points))
	for _, l := range layers {
		var up, down strings.Builder
		over := make([]float64, len(under))
		for i, p := range d.t.Points {
			over[i] = under[i] + float64(l.of(p))
			until := d.end
			if i+1 < len(d.t.Points) {
				until = d.t.Points[i+1].At
			}
			if i == 0 {
				fmt.Fprintf(&up, "%s %s", d.x(p.At), d.y(over[i]))
			}
			fmt.Fprintf(&up, "V%sH%s", d.y(over[i]), d.x(until))
		}
		for i := len(under) - 1; i >= 0; i-- {
			fmt.Fprintf(&down, "V%sH%s", d.y(under[i]), d.x(d.t.Points[i].At))
		}
		fmt.Fprintf(b, `<path class="%s" fill="%s" d="M%s%sZ"/>`+"\n", l.class, l.colour, up.String(), down.String())
		under = over
	}
	var wanted strings.Builder
	for i, p := range d.t.Points {
		until := d.end
		if i+1 < len(d.t.Points) {
			until = d.t.Points[i+1].At
		}
		if i == 0 {
			fmt.Fprintf(&wanted, "%s %s", d.x(p.At), d.y(float64(p.Desired)))
		}
		fmt.Fprintf(&wanted, "V%sH%s", d.y(float64(p.Desired)), d.x(until))
	}
	fmt.Fprintf(b, `<path class="wanted" fill="none" stroke="#0f172a" stroke-width="1.5" stroke-dasharray="5 3" d="M%s"/>`+"\n", wanted.String())
	if d.t.End > 0 {
		fmt.Fprintf(b, `<path class="end" stroke="#16a34a" stroke-width="2" d="M%s %dV%d"/>`+"\n", d.x(d.t.End), chartTop, chartBottom)
	}
}

func (d drawing) waves(b *strings.Builder) {
	for i, w := range d.t.Waves[:min(len(d.t.Waves), mostWaves)] {
		fmt.Fprintf(b, `<path class="wave" stroke="#7c3aed" d="M%s %dV%d"/><text class="wave" x="%s" y="%d" dx="3" fill="#7c3aed" font-size="10">%d<title>%s</title></text>`+"\n",
			d.x(w.At), chartTop-4, chartBottom, d.x(w.At), chartTop+2+10*(i%2), i+1, wording.HTML(wording.Clean(w.Name)))
	}
}

func (d drawing) legend(b *strings.Builder) {
	x := chartLeft
	for _, l := range layers {
		fmt.Fprintf(b, `<rect class="%s" x="%d" y="%d" width="10" height="10" fill="%s"/><text class="label" x="%d" y="%d" fill="#334155">%s</text>`+"\n", l.class, x, chartBottom+28, l.colour, x+15, chartBottom+37, l.name)
		x += 34 + 7*len(l.name)
	}
	fmt.Fprintf(b, `<path class="wanted" d="M%d %dh16" stroke="#0f172a" stroke-width="1.5" stroke-dasharray="5 3"/><text class="label" x="%d" y="%d" fill="#334155">desired</text>`+"\n", x, chartBottom+33, x+21, chartBottom+37)
	x += 80
	if len(d.t.Waves) > 0 {
		fmt.Fprintf(b, `<path class="wave" d="M%d %dv10" stroke="#7c3aed"/><text class="label" x="%d" y="%d" fill="#334155">start of a wave</text>`+"\n", x, chartBottom+28, x+6, chartBottom+37)
		x += 110
	}
	fmt.Fprintf(b, `<path class="end" d="M%d %dv10" stroke="#16a34a" stroke-width="2"/><text class="label" x="%d" y="%d" fill="#334155">done</text>`+"\n", x, chartBottom+28, x+6, chartBottom+37)
}

// notes returns the numbers of calls and throttled calls, and the first waits.
func notes(t *timeline.Timeline) []string {
	calls, throttled := 0, 0
	for _, c := range t.Calls {
		calls, throttled = calls+c.Calls, throttled+c.Throttled
	}
	lines := []string{fmt.Sprintf("%s to AWS, %d throttled", wording.Count(calls, "call"), throttled)}
	if len(t.Doubts) > 0 {
		lines = append(lines, "! "+wording.Clean(t.Doubts[0]))
	}
	for _, w := range t.Waiting {
		lines = append(lines, wait(t, w))
	}
	return lines[:min(len(lines), 3)]
}

// broken wraps a text at width characters, and returns the first lines, at most most.
func broken(text string, width, most int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	lines = append(lines, line)
	if len(lines) > most {
		lines = lines[:most]
		lines[most-1] += " …"
	}
	return lines
}
