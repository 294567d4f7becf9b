package clock

import (
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// machine has clocks that can be set.
type machine struct {
	true  time.Time     // what time it is
	wall  time.Duration // how far the wall clock is ahead of that
	ticks time.Duration
}

func newMachine() (*machine, *Clock) {
	m := &machine{true: noon}
	return m, &Clock{wall: func() time.Time { return m.true.Add(m.wall) }, ticks: func() time.Duration { return m.ticks }}
}

func (m *machine) pass(d time.Duration) { m.true, m.ticks = m.true.Add(d), m.ticks+d }

const day = 24 * time.Hour

func TestJumps(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		do               func(*machine, *Clock)
		earliest, latest time.Duration // relative to the true time
		ahead            time.Duration
	}{
		"nothing heard":           {func(m *machine, _ *Clock) { m.wall = 10 * day }, 10 * day, 10 * day, 0},
		"heard":                   {func(m *machine, c *Clock) { c.Hear(m.true); m.pass(time.Hour) }, 0, 0, 0},
		"wrong from the start":    {func(m *machine, c *Clock) { m.wall = 10 * day; c.Hear(m.true); m.pass(time.Hour) }, 0, 0, 10 * day},
		"behind from the start":   {func(m *machine, c *Clock) { m.wall = -10 * day; c.Hear(m.true); m.pass(time.Hour) }, 0, 0, -10 * day},
		"jumps ahead":             {func(m *machine, c *Clock) { c.Hear(m.true); m.wall = 10 * day }, 0, 10 * day, 0},
		"jumps ahead, then heard": {func(m *machine, c *Clock) { c.Hear(m.true); m.wall = 10 * day; c.Hear(m.true) }, 0, 0, 10 * day},
		"jumps back":              {func(m *machine, c *Clock) { c.Hear(m.true); m.wall = -10 * day }, -10 * day, 0, 0},
		"is put right": {func(m *machine, c *Clock) {
			m.wall = 10 * day
			c.Hear(m.true)
			m.wall = 0
			m.pass(time.Minute)
			c.Hear(m.true)
		}, 0, 0, 0},
		"is slewed":          {func(m *machine, c *Clock) { c.Hear(m.true); m.wall = 20 * time.Second }, 0, 0, 0},
		"sleeps":             {func(m *machine, c *Clock) { c.Hear(m.true); m.true = m.true.Add(3 * day) }, -3 * day, 0, 0},
		"sleeps, then heard": {func(m *machine, c *Clock) { c.Hear(m.true); m.true = m.true.Add(3 * day); c.Hear(m.true) }, 0, 0, 0},
		"two clocks":         {func(m *machine, c *Clock) { c.Hear(m.true.Add(-time.Hour)); m.pass(time.Minute); c.Hear(m.true) }, -time.Hour, 0, 0},
		"one of two left":    {func(m *machine, c *Clock) { c.Hear(m.true.Add(-time.Hour)); c.Hear(m.true); m.pass(otherValid) }, 0, 0, 0},
		"nonsense":           {func(m *machine, c *Clock) { c.Hear(time.Time{}); c.Hear(m.true); c.Hear(time.Time{}) }, 0, 0, 0},
	} {
		m, c := newMachine()
		tt.do(m, c)
		got := c.Moment()
		if e, l, a := got.Earliest.Sub(m.true), got.Latest.Sub(m.true), c.Ahead(); e != tt.earliest || l != tt.latest || a != tt.ahead || !c.Earliest().Equal(got.Earliest) {
			t.Errorf("%s: between %s and %s, ahead %s; want %s, %s, %s", name, e, l, a, tt.earliest, tt.latest, tt.ahead)
		}
	}
}

// TestReal reads the clocks of this machine.
func TestReal(t *testing.T) {
	t.Parallel()
	c := New()
	told := time.Now().Add(-48 * time.Hour)
	c.Hear(told)
	m := c.Moment()
	if !m.Heard || !m.Earliest.Equal(m.Latest) || m.Earliest.Sub(told) < 0 || m.Earliest.Sub(told) > time.Hour || c.Ahead() < 47*time.Hour {
		t.Errorf("%+v, ahead %s", m, c.Ahead())
	}
}
