package gate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/rollout"
)

// nodesReady checks whether all machines of the new hash are ready, and none is late.
func (j judge) nodesReady() rollout.Answer {
	g := j.ask.Gate.NodesReady
	machines, unasked := int32(0), []string{}
	found := j.each(func(p *rollout.Pool) finding {
		f := &p.Facts
		machines += p.New
		switch {
		case f.NodesUnknown != "":
			return finding{verdict: rollout.Unknown, what: "the nodes of its cluster cannot be read: " + clip(f.NodesUnknown)}
		case f.NodesFrom != rollout.FromNodes && g.Required:
			return finding{verdict: rollout.Unknown, what: "its nodes cannot be read, because its target has no kubeconfigFile, and the gate requires them"}
		case f.NodesFrom != rollout.FromNodes && !slices.Contains(unasked, p.Target):
			unasked = append(unasked, p.Target)
		}
		return ready(p, g.Within)
	})
	passed := fmt.Sprintf("%s of the new version %s ready", counted(machines, "machine"), areOf(machines))
	if len(unasked) > 0 {
		passed += "; without kubeconfigFile of " + list(unasked) + ", a machine in service counts as ready"
	}
	return worst(found, passed)
}

// ready judges the machines of one pool.
func ready(p *rollout.Pool, within time.Duration) finding {
	f := &p.Facts
	var late, waiting []string
	for _, m := range f.Waiting {
		text := m.Instance
		if m.Why != "" {
			text += " (" + clip(m.Why) + ")"
		}
		if !m.Since.IsZero() && f.ReadAt.Sub(m.Since) > within { // by now it may be ready
			late = append(late, text)
		}
		waiting = append(waiting, text)
	}
	what := "no Ready node"
	if f.NodesFrom != rollout.FromNodes {
		what = "no place in service"
	}
	switch left := p.New - f.Ready; {
	case len(late) > 0:
		return finding{verdict: rollout.Fail, what: fmt.Sprintf("%s of the new version %s %s for longer than %s: %s", counted(int32(len(late)), "machine"), haveOf(len(late)), what, within, list(late))}
	case p.Machines > 0 && p.New == 0:
		return finding{verdict: rollout.Unknown, what: "it has no machine of the new version yet"}
	case left > 0:
		if len(waiting) == 0 {
			return finding{verdict: rollout.Unknown, what: counted(left, "machine") + " of the new version " + areOf(left) + " not ready yet"}
		}
		return finding{verdict: rollout.Unknown, what: fmt.Sprintf("%d of %s of the new version %s not ready yet; each may take %s: %s",
			left, counted(p.New, "machine"), areOf(left), within, list(waiting))}
	}
	return finding{verdict: rollout.Pass}
}

// failedActivities counts the activities that failed since the share began, over all pools of the
// request.
func (j judge) failedActivities() rollout.Answer {
	failed, causes, first := 0, []string{}, time.Time{}
	found := j.each(func(p *rollout.Pool) finding {
		for _, a := range p.Facts.Activities {
			if a.At.Before(j.ask.Since) {
				continue
			}
			failed++
			if a.Cause != "" {
				causes = append(causes, p.String()+": "+clip(a.Cause))
			}
			if first.IsZero() || p.Facts.ReadAt.Before(first) {
				first = p.Facts.ReadAt
			}
		}
		if p.Machines > 0 && p.Facts.ActivitiesRead.Before(j.ask.Since) {
			return finding{rollout.Unknown, "its scaling activities have not been read since the share began", p.Facts.ReadAt}
		}
		return finding{verdict: rollout.Pass, at: p.Facts.ActivitiesRead}
	})
	most := int(j.ask.Gate.FailedActivities.Max)
	since := " since " + clock(j.ask.Since)
	if failed > most {
		slices.Sort(causes)
		what := fmt.Sprintf("%s failed%s", counted(failed, "scaling activity"), since)
		if most > 0 {
			what += fmt.Sprintf(", more than %d", most)
		}
		return rollout.Answer{Verdict: rollout.Fail, What: what + ": " + list(causes), At: first}
	}
	passed := "no scaling activity failed" + since
	if failed > 0 {
		passed = fmt.Sprintf("%s failed%s, %d are allowed", counted(failed, "scaling activity"), since, most)
	}
	return worst(found, passed)
}

// alarms checks each alarm in the account and region of each pool.
func (j judge) alarms() rollout.Answer {
	names := j.ask.Gate.CloudWatchAlarms.Alarms
	found := j.each(func(p *rollout.Pool) finding {
		if why := p.Facts.AlarmsUnknown; why != "" {
			return finding{verdict: rollout.Unknown, what: "the alarms of its account and region cannot be read: " + clip(why)}
		}
		state := map[string]string{}
		for _, a := range p.Facts.Alarms {
			state[a.Name] = a.State
		}
		var bad, open []string
		for _, name := range names {
			switch s, known := state[name]; {
			case !known:
				open = append(open, "weir did not read the alarm "+name)
			case s == "":
				open = append(open, "there is no alarm "+name+" in "+place(p))
			case s == "ALARM":
				bad = append(bad, "the alarm "+name+" in "+place(p)+" is in ALARM")
			case s != "OK":
				open = append(open, "the alarm "+name+" in "+place(p)+" is "+s)
			}
		}
		switch {
		case len(bad) > 0:
			return finding{verdict: rollout.Fail, what: list(bad)}
		case len(open) > 0:
			return finding{verdict: rollout.Unknown, what: list(open)}
		}
		return finding{verdict: rollout.Pass}
	})
	return worst(found, "OK: "+list(names))
}

func place(p *rollout.Pool) string { return strings.TrimSpace(p.Account + " " + p.Region) }

func counted[N int | int32](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if stem, ok := strings.CutSuffix(what, "y"); ok {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func haveOf(n int) string {
	if n == 1 {
		return "has had"
	}
	return "have had"
}

func areOf(n int32) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
