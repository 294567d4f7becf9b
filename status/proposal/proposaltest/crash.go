package proposaltest

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/proposal"
)

// writesMayBeLost: a response is lost, before or after the write takes effect. The process may then end, or
// the record may be lost. The result is one pull request with the wanted content.
func writesMayBeLost(t *testing.T, begin func(*testing.T) *Kind) {
	for _, c := range lostWrites(begin(t)) {
		k := begin(t)
		k.Need()
		if c.second {
			k.turn()
			k.Change()
		}
		k.Fails[c.what], k.Lost = busy, c.done
		k.turn()
		switch c.after {
		case "ends":
			k.Restart()
		case "forgets":
			k.Forget()
		}
		k.turn()
		if c.second && c.after == "forgets" { // the found pull request counts as just changed
			k.turn()
		}
		t.Log(c.what, "done:", c.done, c.after, "second:", c.second)
		k.proposes(1)
		if n := k.count(proposal.WasOpened); c.after != "forgets" && n != 1 {
			t.Errorf("told %q", k.Events)
		}
	}
}

// lostWrite is a request whose response is lost.
type lostWrite struct {
	what string
	// done says that the request took effect. second says that it belongs to a change of an open pull
	// request. after is the next event in the process: it continues, ends, or loses its record.
	done, second bool
	after        string
}

// lostWrites lists the cases that a kind of pull request can have.
func lostWrites(of *Kind) (out []lostWrite) {
	for _, what := range []string{"push", "open", "edit", "list"} {
		for _, done := range []bool{false, true} {
			for _, after := range []string{"goes on", "ends", "forgets"} {
				for _, second := range []bool{false, true} {
					if second && (of.Change == nil || what == "open") || !second && what == "edit" || what == "list" && done || after == "forgets" && !of.Goes {
						continue
					}
					out = append(out, lostWrite{what: what, done: done, after: after, second: second})
				}
			}
		}
	}
	return out
}

// endsAfterWrites: the process ends right after a write, and everything that it did not store before is
// lost.
func endsAfterWrites(t *testing.T, begin func(*testing.T) *Kind) {
	of := begin(t)
	for _, call := range []string{"push", "open", "edit", "close"} {
		if call == "edit" && of.Change == nil {
			continue
		}
		k := begin(t)
		k.Need()
		switch call {
		case "edit":
			k.turn()
			k.Change()
		case "close":
			k.turn()
			k.Drop()
		}
		k.Crash, k.Now.Time = call, k.Now.Time.Add(max(k.Every, time.Hour))
		if err := k.Turn(); err == nil {
			t.Errorf("%s: the process goes on", call)
		}
		k.Revive()
		k.Restart()
		k.turn()
		if call != "close" {
			k.turn()
			k.proposes(1)
		} else if last := k.Told[len(k.Told)-1]; !strings.Contains(last, "was closed: ") || strings.Contains(last, "was closed: weir") {
			t.Errorf("weir closed it itself, and reports %q", last)
		}
	}
}

// whoClosedIt: closing gets no response. If it took effect, weir closed the pull request. If not, and the
// pull request is needed again, a later closing is somebody else's.
func whoClosedIt(t *testing.T, begin func(*testing.T) *Kind) {
	for _, lost := range []bool{false, true} {
		k := begin(t)
		k.Need()
		k.turn()
		k.Drop()
		k.Fails["close"], k.Lost = busy, lost
		if s := k.turn(); s.Closing == "" || !s.IsOpen() {
			t.Fatalf("%+v", s)
		}
		k.Restart()
		if !lost {
			k.Again()
			if s := k.turn(); s.Closing != "" {
				t.Errorf("%+v", s)
			}
			k.proposes(1)
			k.Last().State = forge.Closed
		}
		k.turn()
		if k.Last().State != forge.Closed || len(k.Pulls) != 1 || k.count(proposal.WasClosed) != 1 {
			t.Errorf("done %t: %+v, told %q", lost, k.State(), k.Events)
		}
		closed := k.Told[len(k.Told)-1]
		if s := k.State(); s.Phase == proposal.Closed && lost || s.Phase == proposal.Obsolete && !lost {
			t.Errorf("done %t: %+v, told %q", lost, s, closed)
		}
	}
}

// slowForge: a forge that does not know the branch for a moment, or is down for an hour, gets further
// requests. Nothing of this is reported.
func slowForge(t *testing.T, begin func(*testing.T) *Kind) {
	for name, err := range map[string]error{"slow": &forgehttp.Error{Fault: forgehttp.FaultRefused, Status: 422, Message: "head is invalid"}, "busy": busy} {
		k := begin(t)
		k.Need()
		for range map[string]int{"slow": 1, "busy": 5}[name] {
			k.Fails["open"] = err
			if s := k.turn(); s.IsOpen() || s.Refused || s.After.IsZero() || len(k.Events) != 0 {
				t.Fatalf("%s: %+v, told %q", name, s, k.Events)
			}
		}
		k.turn()
		k.proposes(1)
	}
}

// leftOpen: a pull request is opened and its response lost, and when weir searches for it, it is no longer
// needed.
func leftOpen(t *testing.T, begin func(*testing.T) *Kind) {
	for name, do := range map[string]func(k *Kind){
		"open":    func(*Kind) {},
		"theirs":  func(k *Kind) { k.Push(k.Last().HeadRef) },
		"closed":  func(k *Kind) { k.Last().State = forge.Closed },
		"dropped": func(k *Kind) { k.Pulls = nil }, // it was not opened
	} {
		k := begin(t)
		k.Need()
		k.Fails["open"], k.Lost = busy, true
		k.turn()
		k.Drop()
		do(k)
		k.Restart()
		k.turn()
		s := k.State()
		if open := len(k.Pulls) > 0 && k.Last().State == forge.Open; open != (name == "theirs") || s.IsOpen() != open {
			t.Errorf("%s: open %t, %+v", name, open, s)
		}
	}
}
