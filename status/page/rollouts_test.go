package page

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/status/statustest"
	"github.com/weir-gitops/weir/status/waves"
)

// rolls are FleetRollouts as a daemon has them.
type rolls struct {
	list  []waves.Rollout
	turns []waves.Turn
	err   error
}

func (r rolls) Any() bool                 { return len(r.list)+len(r.turns) > 0 || r.err != nil }
func (r rolls) List() (waves.List, error) { return waves.List{Rollouts: r.list, Turns: r.turns}, r.err }

// conductor drives package rollout as a daemon does, so that pages show what there is.
type conductor struct {
	in     rollout.Input
	record rollout.Record
}

func minutes(n int) *time.Duration { return new(time.Duration(n) * time.Minute) }

// newConductor has a commit before it that changes all pools of clusters.
func newConductor(pools int, machines int32) *conductor {
	spec := rollout.Spec{Target: "eu-production", FleetRollout: intent.FleetRollout{
		Key: intent.Key{Namespace: "platform", Name: "nodes"}, BakeTime: 15 * time.Minute, MaxMachines: 400, FailureBudget: 0,
		Waves: []intent.Wave{
			{Name: "canary", Pools: 1, Shares: []int32{10, 50, 100}, BakeTime: minutes(30)}, {Name: "early", Percent: 20}, {Name: "quarter", Percent: 45}, {Name: "half", Percent: 75},
		},
		Gates: []intent.RolloutGate{
			{Name: "nodes", NodesReady: &intent.NodesReadyGate{Within: 10 * time.Minute}}, {Name: "launches", FailedActivities: &intent.FailedActivitiesGate{}},
			{Name: "alarms", CloudWatchAlarms: &intent.AlarmsGate{Alarms: []string{"web-5xx", "queue-age"}}},
			{Name: "errors", Prometheus: &intent.PrometheusGate{Provider: "main", Query: "sum(rate(http_requests_total{code=~\"5..\"}[5m]))", Max: new(1.5)}},
		},
	}}
	c := &conductor{in: rollout.Input{Revision: statustest.ShaNew, Specs: []rollout.Spec{spec}, Missing: map[string]string{}, Answers: map[string]rollout.Answer{}, Now: statustest.Noon.Add(-4 * time.Hour)}}
	targets := []string{"eu-production", "us-production", "eu-edge"}
	for i := range pools {
		target := targets[i%len(targets)]
		p := rollout.Pool{
			ID: rollout.ID{Target: target, Pool: fmt.Sprintf("default/%s-%02d", []string{"web", "batch", "workers", "gpu"}[i%4], i)}, Namespace: "default", Cluster: target,
			Revision: statustest.ShaNew, Hash: "4be91a7730c2d9f1", Machines: machines + int32(i%5)*4, Pending: true, Earlier: &rollout.Version{Template: "lt", Number: 4},
		}
		if i%4 == 3 {
			p.Whole, p.Machines = true, 12
		}
		c.in.Pools = append(c.in.Pools, p)
	}
	return c
}

// turn conducts once; all gates pass unless says has another answer.
func (c *conductor) turn(after time.Duration, says map[string]rollout.Answer) {
	c.in.Now = c.in.Now.Add(after)
	for _, g := range c.in.Specs[0].Gates {
		a := rollout.Answer{Verdict: rollout.Pass, What: map[string]string{
			"nodes": "all new nodes are Ready", "launches": "no launch has failed", "alarms": "web-5xx is OK, queue-age is OK", "errors": "0.3",
		}[g.Name], At: c.in.Now}
		if other, is := says[g.Name]; is {
			other.At = c.in.Now
			a = other
		}
		c.in.Answers["platform/nodes|"+g.Name] = a
	}
	c.record = rollout.Next(c.record, c.in).Record
}

// roll lets pools go as far as they may; of starting ones the machines are not ready yet.
func (c *conductor) roll(ready bool) {
	for i := range c.in.Pools {
		p := &c.in.Pools[i]
		permit, _ := c.record.PermitOf(p.ID)
		p.Moving = nil
		if to := rollout.Need(p.Machines, permit.Share); permit.Hash == p.Hash && to > p.New {
			p.New = to
			if !ready {
				p.New = max(1, to/2)
				p.Moving = &rollout.Move{ID: "08b91cf7", Hash: p.Hash, Share: permit.Share, Left: to - p.New}
			}
			p.Pending = p.New < p.Machines
		}
		if p.Facts.Ready = p.New; !ready && p.Moving != nil {
			p.Facts.Ready = p.New / 2
		}
	}
}

// until lets all go well up to a wave and share, within it bakes.
func (c *conductor) until(wave, share int) {
	for range 200 {
		c.turn(5*time.Minute, nil)
		r := c.record.Runs[0]
		if !r.Gathers && (r.Wave > wave || r.Wave == wave && r.Share >= share || !r.Ended.IsZero()) {
			return
		}
		c.roll(true)
	}
	panic("it does not get there")
}

// shown is how it stands now, with times as of noon.
func (c *conductor) shown() waves.Rollout {
	ahead := statustest.Noon.Sub(c.in.Now)
	record := c.record
	move := func(t *time.Time) {
		if !t.IsZero() {
			*t = t.Add(ahead)
		}
	}
	for i := range record.Runs {
		r := &record.Runs[i]
		for _, t := range []*time.Time{&r.Began, &r.Ended, &r.Since, &r.Baked} {
			move(t)
		}
		for k := range r.Gates {
			move(&r.Gates[k].At)
		}
		for _, w := range []*rollout.Decision{r.Paused, r.Stopped} {
			if w != nil {
				move(&w.At)
			}
		}
	}
	return waves.Of("fleet", &record, &record.Runs[0], waves.AddPools(nil, c.in.Pools), statustest.Noon)
}

// rolloutStages are what a FleetRollout comes to, each with what its page says.
var rolloutStages = map[string]struct {
	make func() waves.Rollout
	says []string
}{
	"running": {func() waves.Rollout {
		c := newConductor(12, 30)
		c.until(2, 0)
		c.turn(time.Second, nil)
		c.roll(false)
		c.turn(3*time.Minute, map[string]rollout.Answer{"nodes": {Verdict: rollout.Unknown, What: "eu-production default/web-08: 9 of 17 new nodes are Ready"}})
		return c.shown()
	}, []string{"Rolling out: quarter", "canary : done 30 new 1 pool, 30 machines", "quarter : current", "half : upcoming", "starting", "unknown eu-production default/web-08: 9 of 17 new nodes are Ready now", "no alarm of web-5xx, queue-age", "at most 400 at a time"}},
	"baking": {func() waves.Rollout {
		c := newConductor(12, 30)
		c.until(0, 1)
		c.turn(time.Second, nil)
		c.roll(true)
		c.turn(time.Second, nil)
		c.turn(11*time.Minute, nil)
		return c.shown()
	}, []string{"Baking: canary, 50 % of each pool", "bake time: 11 min of 30 min, ends in 19 min", "in shares of 10, 50, 100 %, now 50 %", "15 new, 15 old", "Bake time left, at least"}},
	"paused": {func() waves.Rollout {
		c := newConductor(12, 30)
		c.until(1, 0)
		c.turn(time.Second, nil)
		c.record, _ = c.record.Pause("nodes", rollout.Decision{By: "rufus", Why: "the release is today", At: c.in.Now})
		c.turn(7*time.Minute, nil)
		return c.shown()
	}, []string{"Paused in quarter", "Paused by rufus 7 min ago : the release is today", "To continue, run weir rollout resume platform/nodes."}},
	"stopped": {func() waves.Rollout {
		c := newConductor(12, 30)
		c.until(1, 0)
		c.turn(time.Second, nil)
		c.roll(false)
		c.turn(10*time.Minute, map[string]rollout.Answer{"nodes": {Verdict: rollout.Fail, What: "us-production default/batch-01: i-0a12c3d4e5f607919 is not Ready after 10 min"}})
		c.turn(4*time.Minute, nil)
		return c.shown()
	}, []string{"Stopped in quarter, 278 machines left.", "Stopped by weir 4 min ago : gate nodes: us-production default/batch-01: i-0a12c3d4e5f607919 is not Ready after 10 min", "What to do", "--retry tries the same change again", "No longer rolled out", "failed"}},
	"finished": {func() waves.Rollout {
		c := newConductor(12, 30)
		c.until(99, 0)
		return c.shown()
	}, []string{"All 12 pools rolled.", "canary : done"}},
	"many": {func() waves.Rollout {
		c := newConductor(50, 100)
		c.until(3, 0)
		c.turn(time.Second, nil)
		c.roll(false)
		c.turn(2*time.Minute, nil)
		return c.shown()
	}, []string{"Rolling out: half", "rest : upcoming", "more of half"}},
}

// rolloutPages serves a fleet for each stage, and has the addresses of its pages.
func rolloutPages(t *testing.T) map[string]string {
	out := map[string]string{}
	for name, stage := range rolloutStages {
		r := stage.make()
		b := showcase()
		srv := httptest.NewServer(Handler(b, Options{Rollouts: rolls{list: []waves.Rollout{r}}}))
		t.Cleanup(srv.Close)
		t.Cleanup(b.Live.Close)
		out["rollout-"+name] = srv.URL + rolloutLink(r.Source, r.Name)
		if name == "stopped" {
			out["rollout-list"], out["rollout-start"] = srv.URL+"/rollouts", srv.URL+"/"
		}
	}
	return out
}

func TestRolloutsAreShown(t *testing.T) {
	for name, stage := range rolloutStages {
		r := stage.make()
		o := Options{Rollouts: rolls{list: []waves.Rollout{r}}}
		rec := ask(t, showcase(), o, "/rollouts/fleet/platform/nodes")
		text := words(rec.Body.String())
		for _, want := range stage.says {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q: %s", name, want, text)
			}
		}
		if rec.Code != http.StatusOK {
			t.Errorf("%s: %d", name, rec.Code)
		}
		start := words(ask(t, showcase(), o, "/").Body.String())
		if shown := strings.Contains(start, "platform/nodes "); shown != (name != "finished") {
			t.Errorf("the start page with a rollout that is %s: %s", name, start)
		}
		if list := words(ask(t, showcase(), o, "/rollouts").Body.String()); !strings.Contains(list, "platform/nodes "+r.Phase) {
			t.Errorf("the list: %s", list)
		}
	}
}

func TestAPoolLeadsToItsRollout(t *testing.T) {
	c := newConductor(3, 30)
	c.in.Pools[0].Pool = "default/web"
	c.until(0, 0)
	r := c.shown()
	rec := ask(t, showcase(), Options{Rollouts: rolls{list: []waves.Rollout{r}}}, "/targets/eu-production/pools/default/web")
	if body := rec.Body.String(); !strings.Contains(body, `href="/rollouts/fleet/platform/nodes"`) || !strings.Contains(words(body), "platform/nodes , half running waits for half of platform/nodes: canary, 10 % of each pool") {
		t.Errorf("it does not: %s", words(body))
	}
	rec = ask(t, showcase(), Options{Rollouts: rolls{list: []waves.Rollout{r}}}, "/targets/us-production/pools/default/web")
	if strings.Contains(rec.Body.String(), "/rollouts/fleet/platform/nodes") {
		t.Error("one that is in no wave leads there")
	}
}

func TestRolloutsThatAreNotThere(t *testing.T) {
	b := showcase()
	for _, o := range []Options{{}, {Rollouts: rolls{}}} {
		if text := words(ask(t, b, o, "/").Body.String()); strings.Contains(text, "Rollouts") {
			t.Errorf("the page has a place for them: %s", text)
		}
		if text := words(ask(t, b, o, "/rollouts").Body.String()); !strings.Contains(text, "No FleetRollouts found") {
			t.Errorf("the list says %s", text)
		}
		if rec := ask(t, b, o, "/rollouts/fleet/platform/nodes"); rec.Code != http.StatusNotFound {
			t.Errorf("one that is not there: %d", rec.Code)
		}
	}
	broken := Options{Rollouts: rolls{err: errors.New("engine")}}
	for _, path := range []string{"/rollouts", "/rollouts/fleet/platform/nodes"} {
		if text := words(ask(t, b, broken, path).Body.String()); !strings.Contains(text, "weir cannot read the records of rollouts") {
			t.Errorf("%s says %s", path, text)
		}
	}
	if rec := ask(t, b, broken, "/"); rec.Code != http.StatusOK {
		t.Errorf("the start page: %d", rec.Code)
	}
}

// Who may operate pauses a rollout, lets it go on and stops the change that they look at;
// others are told in words what there is to do.
func TestWhatARolloutOffers(t *testing.T) {
	ann := Viewer{Name: "ann", Operate: true, Form: "the-token"}
	for name, want := range map[string]string{"running": "pause abort", "paused": "resume abort", "stopped": "pause", "finished": "pause", "idle": "pause"} {
		r := rolloutStages["running"].make()
		switch name {
		case "idle":
			r = waves.Rollout{Source: "fleet", Name: "platform/nodes", Phase: waves.Idle}
		case "paused":
			r.Phase, r.Paused = waves.Paused, &waves.Word{By: "bob", At: statustest.Noon}
		case "stopped", "finished":
			r = rolloutStages[name].make()
		}
		for _, v := range []Viewer{ann, {Name: "eve"}, {}} {
			rec := httptest.NewRecorder()
			Handler(showcase(), Options{Rollouts: rolls{list: []waves.Rollout{r}}, Viewer: func(*http.Request) Viewer { return v }}).
				ServeHTTP(rec, httptest.NewRequest(http.MethodGet, rolloutLink(r.Source, r.Name), nil))
			body := rec.Body.String()
			for _, do := range []string{"pause", "resume", "abort"} {
				if got, want := strings.Contains(body, `name="do" value="`+do+`"`), v.Operate && strings.Contains(want, do); got != want {
					t.Errorf("%s, for %q: %s is offered: %t", name, v.Name, do, got)
				}
			}
			if forms, tokens := strings.Count(body, `action="/actions/rollout"`), strings.Count(body, `name="form" value="the-token"`); forms != tokens {
				t.Errorf("%s: %d forms with %d tokens", name, forms, tokens)
			}
			if v.Operate && strings.Contains(want, "abort") && !strings.Contains(body, `name="revision" value="`+r.Revision+`"`) {
				t.Errorf("%s: it does not say of which change it is", name)
			}
		}
	}
}

// Targets that wait by the configuration stand beside FleetRollouts, and without any.
func TestTargetsThatWaitAreListed(t *testing.T) {
	o := Options{Rollouts: rolls{turns: []waves.Turn{{Target: "eu-production", Hold: "wave", Steps: 3, Waits: "3 steps wait for an <b>earlier</b> wave"}}}}
	body := ask(t, showcase(), o, "/rollouts").Body.String()
	for _, want := range []string{"No FleetRollouts found", "Targets waiting for other targets", "eu-production 3 steps wait for an"} {
		if !strings.Contains(words(body), want) {
			t.Errorf("the list lacks %q: %s", want, words(body))
		}
	}
	if !strings.Contains(body, `href="/targets/eu-production"`) || strings.Contains(body, "<b>earlier") {
		t.Errorf("the list: %s", body)
	}
}

// What others wrote is text wherever it is shown.
func TestARolloutCannotBreakThePage(t *testing.T) {
	c := newConductor(3, 30)
	c.in.Specs[0].Waves[0].Name = `<script>alert(1)</script>`
	c.until(0, 0)
	c.record, _ = c.record.Pause("nodes", rollout.Decision{By: `"><img src=x>`, Why: "a\u202eb", At: c.in.Now})
	r := c.shown()
	r.Name = `x/<b>"`
	body := ask(t, showcase(), Options{Rollouts: rolls{list: []waves.Rollout{r}}}, rolloutLink(r.Source, r.Name)).Body.String()
	for _, bad := range []string{"<script>a", "<img src=x", "<b>\"", "\u202e"} {
		if strings.Contains(body, bad) {
			t.Errorf("the page has %q: %s", bad, body)
		}
	}
	if !strings.Contains(words(body), "Paused") {
		t.Errorf("the page of such a name is not found: %s", words(body))
	}
}
