package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/gates/calendar"
)

// When a plan of a target is applied.
const (
	Always     = "always"
	AsReviewed = "as-reviewed"
)

// Kinds of a window.
const (
	Allow = "allow"
	Deny  = "deny"
)

// Window is a time of the week in which steps may run that replace or end
// instances, or delete something, or with kind deny one in which they may not.
// What disrupts nothing needs no window.
type Window struct {
	// Kind is allow (the default) or deny. Where some windows allow, one of them
	// must be open; a window that denies wins over them.
	Kind string `yaml:"kind"`
	// Days are those on which it begins: mon, tue, wed, thu, fri, sat, sun; none
	// stands for every day.
	Days []string `yaml:"days"`
	// Start is when it begins, by the clock of the time zone, such as 09:00;
	// midnight if left out.
	Start Clock `yaml:"start"`
	// End is when it ends, up to 24:00, on the next day if it is not after the
	// start; midnight if left out.
	End Clock `yaml:"end"`
	// Duration takes the place of the end: how long the window is open, at most
	// 168h, whatever the clock shows meanwhile.
	Duration Duration `yaml:"duration"`
	// Timezone is the IANA name of the place whose clock counts, such as
	// Europe/Berlin; UTC if left out.
	Timezone string `yaml:"timezone"`
}

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// Clock is a time of day in minutes since midnight.
type Clock int

var clockPattern = regexp.MustCompile(`^([01][0-9]|2[0-3]):[0-5][0-9]$|^24:00$`)

func (c *Clock) parse(text string) error {
	if !clockPattern.MatchString(text) {
		return fmt.Errorf("%q is no time of day; write it like 09:30", text)
	}
	hours, _ := strconv.Atoi(text[:2]) // digits, as the pattern says
	minutes, _ := strconv.Atoi(text[3:])
	*c = Clock(hours*60 + minutes)
	return nil
}

// Rollouts is a number of rollouts.
type Rollouts int

func (r *Rollouts) parse(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || strings.HasPrefix(text, "+") {
		return fmt.Errorf("%q is no number of rollouts; write one from 1, or leave the key out for no limit", text)
	}
	*r = Rollouts(n)
	return nil
}

// Calendar returns the target's windows.
func (t *Target) Calendar() ([]calendar.Window, error) {
	var out []calendar.Window
	for _, w := range t.Windows {
		zone, err := w.zone()
		if err != nil {
			return nil, err
		}
		c := calendar.Window{Deny: w.Kind == Deny, Start: int(w.Start), End: int(w.End), Length: time.Duration(w.Duration), Zone: zone}
		for _, d := range w.Days {
			c.Days = append(c.Days, time.Weekday(slices.Index(weekdays, d)))
		}
		out = append(out, c)
	}
	return out, nil
}

// zone is the window's place. What stands for this machine's own is refused: the
// same configuration would mean another time elsewhere.
func (w Window) zone() (*time.Location, error) {
	if w.Timezone == "Local" {
		return nil, errors.New("name the place itself")
	}
	return time.LoadLocation(w.Timezone)
}

func (v *validator) windows(at string, windows []Window) {
	for i, w := range windows {
		at := fmt.Sprintf("%s[%d]", at, i)
		if w.Kind != Allow && w.Kind != Deny {
			v.fault(at+".kind", "bad-value", "", "want %s or %s, got %q", Allow, Deny, w.Kind)
		}
		for j, d := range w.Days {
			if !slices.Contains(weekdays, d) {
				v.fault(fmt.Sprintf("%s.days[%d]", at, j), "bad-value", "", "want one of mon, tue, wed, thu, fri, sat and sun, got %q", d)
			}
		}
		if _, err := w.zone(); err != nil {
			v.fault(at+".timezone", "bad-value", "write an IANA name such as Europe/Berlin or UTC", "%q is no time zone", w.Timezone)
		}
		_, ends := v.decoder.at[at+".end"]
		switch {
		case ends && w.Duration != 0:
			v.fault(at+".duration", "bad-value", "", "give the end or the duration")
		case w.Duration < 0 || time.Duration(w.Duration) > calendar.Longest:
			v.fault(at+".duration", "bad-value", "", "must be between 1s and %s", "168h")
		case ends && w.End == w.Start:
			v.fault(at+".end", "bad-value", "write 24:00 for the end of the day", "the window ends when it begins")
		}
		if w.Start == 24*60 {
			v.fault(at+".start", "bad-value", "", "a day begins at 00:00")
		}
	}
}

// dependencies checks what targets wait for: that there are such targets, and
// that none waits for itself by way of another.
func (v *validator) dependencies() {
	targets := v.config.Targets
	edges := make([][]int, len(targets))
	for i := range targets {
		t := &targets[i]
		glob, err := ParseGlob(t.Path)
		if err != nil {
			continue // said before
		}
		for j, entry := range t.DependsOn {
			at := fmt.Sprintf("targets[%d].dependsOn[%d]", i, j)
			if !dependencyPattern.MatchString(entry) {
				v.fault(at, "bad-value", "", "%q: write the name of a target, in which * stands for any text", entry)
				continue
			}
			for _, m := range placeholder.FindAllStringSubmatch(entry, -1) {
				if n := int(m[1][0] - '0'); n > glob.Wildcards() {
					v.fault(at, "bad-value", "", "{%d} stands for a wildcard that path %q does not have", n, t.Path)
				}
			}
			known := false
			for k := range targets {
				if !overlap(entry, targets[k].Name) {
					continue
				}
				known = true
				if k != i {
					edges[i] = append(edges[i], k)
				} else if !placeholder.MatchString(t.Name) && entry == t.Name {
					v.fault(at, "dependency-cycle", "", "the target %s would wait for itself", t.Name)
				}
			}
			if !known {
				v.fault(at, "unknown-dependency", "", "there is no target %q", entry)
			}
		}
	}
	if cycle := findCycle(edges); cycle != nil {
		var names []string
		for _, n := range cycle {
			names = append(names, targets[n].Name)
		}
		v.fault(fmt.Sprintf("targets[%d].dependsOn", cycle[0]), "dependency-cycle", "take one of them out",
			"targets wait for each other: %s", strings.Join(names, " waits for "))
	}
}

// dependencyPattern is that of a target's name, with wildcards.
var dependencyPattern = regexp.MustCompile(`^(?:[A-Za-z0-9_*]|\{[1-9]\})(?:[A-Za-z0-9._*-]|\{[1-9]\}){0,255}$`)

// overlap reports whether two patterns, in which * and {n} stand for any text,
// have a name in common.
func overlap(a, b string) bool {
	x, y := placeholder.ReplaceAllString(a, "*"), placeholder.ReplaceAllString(b, "*")
	// reach[i][j] says that some text goes with x[:i] and with y[:j].
	reach := make([][]bool, len(x)+2)
	for i := range reach {
		reach[i] = make([]bool, len(y)+2)
	}
	reach[0][0] = true
	for i := range len(x) + 1 {
		for j := range len(y) + 1 {
			if !reach[i][j] {
				continue
			}
			starX, starY := i < len(x) && x[i] == '*', j < len(y) && y[j] == '*'
			if starX || starY {
				reach[i+1][j] = reach[i+1][j] || starX || i < len(x)
				reach[i][j+1] = reach[i][j+1] || starY || j < len(y)
			} else if i < len(x) && j < len(y) && x[i] == y[j] {
				reach[i+1][j+1] = true
			}
		}
	}
	return reach[len(x)][len(y)]
}

// findCycle returns a way along edges that ends where it begins, nil if there is
// none.
func findCycle(edges [][]int) []int {
	const untouched, open, done = 0, 1, 2
	state := make([]int, len(edges))
	var way []int
	var visit func(n int) []int
	visit = func(n int) []int {
		state[n] = open
		way = append(way, n)
		for _, next := range edges[n] {
			if state[next] == open {
				return append(slices.Clone(way[slices.Index(way, next):]), next)
			}
			if state[next] == untouched {
				if cycle := visit(next); cycle != nil {
					return cycle
				}
			}
		}
		way = way[:len(way)-1]
		state[n] = done
		return nil
	}
	for n := range edges {
		if state[n] == untouched {
			if cycle := visit(n); cycle != nil {
				return cycle
			}
		}
	}
	return nil
}

// Dependencies are those of names that the target self waits for, which a path
// with the match m gave: what its dependsOn says, {n} standing for what the path's
// wildcards matched. Where an entry stands for self too, only the entries before
// it count, so that a list puts targets of one path in order: with [canary], all
// but canary wait for canary.
func (t *Target) Dependencies(self string, m Match, names []string) []string {
	var out []string
	for _, entry := range t.DependsOn {
		if !strings.Contains(entry, "*") {
			// One that nothing gives is waited for: a commit may bring it.
			name := NameFor(entry, m)
			if name == self {
				break
			}
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
			continue
		}
		matches := wildcard(entry, m)
		if matches.MatchString(self) {
			break
		}
		for _, name := range names {
			if matches.MatchString(name) && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

func wildcard(entry string, m Match) *regexp.Regexp {
	var parts []string
	for part := range strings.SplitSeq(entry, "*") {
		parts = append(parts, regexp.QuoteMeta(NameFor(part, m)))
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$")
}

// MayHave reports whether the configuration may give a target of the name: those
// of a path with wildcards are known when its source is read.
func (c *Config) MayHave(target string) bool {
	return slices.ContainsFunc(c.Targets, func(t Target) bool { return overlap(t.Name, target) })
}
