package page

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/weir-gitops/weir/status/members"
	"github.com/weir-gitops/weir/status/report"
)

// membersView lists the members that share the work, and the scopes and sources of each.
type membersView struct {
	layout
	Headline string
	Mood     report.Phase
	Engine   string
	EngineID string
	Lag      string
	Error    string
	Refused  string
	Members  []memberView
	Owned    []ownedView
}

type memberView struct {
	members.Member
	Link  string // of its page; empty for this member, or without a valid address
	State string
	Mark  report.Phase
	Owns  string
	Clock string
	Far   bool
}

type ownedView struct {
	members.Owned
	Place   string
	Mark    report.Phase
	Since   moment
	Targets []linked
}

// ownerView is the owner of a target.
type ownerView struct {
	Name  string // empty if the target has no owner
	Last  string
	Since moment
	Here  bool
}

// memberView returns the members that share the work. ok is false for a single daemon.
func (w *views) memberView() (v members.View, ok bool) {
	if w.o.Members == nil {
		return members.View{Engine: members.Engine{Kind: members.Alone}, Members: []members.Member{}, Owned: []members.Owned{}}, false
	}
	v = w.o.Members()
	return v, v.Engine.Kind != members.Alone
}

// ownerOf returns the owner of a target. It is nil for a single daemon, and if the owner is unknown.
func (w *views) ownerOf(target string) *ownerView {
	daemons, several := w.memberView()
	o, known := daemons.OwnerOf(target)
	if !several || !known {
		return nil
	}
	v := &ownerView{Name: o.Owner, Last: o.Last, Since: momentOf(w.current, o.Since)}
	for _, m := range daemons.Members {
		v.Here = v.Here || m.Answers && m.Name == o.Owner
	}
	return v
}

// membersView prepares the page of the members. The headline names the most serious problem.
func (w *views) membersView() membersView {
	daemons, several := w.memberView()
	v := membersView{
		layout: w.layout("members", "Members"), Engine: engineNames[daemons.Engine.Kind], EngineID: daemons.Engine.ID, Error: daemons.Engine.Error, Refused: daemons.Engine.Refused,
		Lag: span(time.Duration(daemons.Engine.Lag * float64(time.Second)).Round(100 * time.Millisecond)),
	}
	v.JSON = "/api/v1/members"
	for _, m := range daemons.Members {
		v.Members = append(v.Members, viewOfMember(m, daemons.Far()))
	}
	for _, o := range daemons.Owned {
		v.Owned = append(v.Owned, w.viewOfOwned(o))
	}
	unowned := daemons.Unowned()
	switch longest := daemons.Longest(w.current.Now()); {
	case !several:
		v.Headline, v.Mood = "One daemon, without coordination.", report.Converged
	case daemons.Engine.Error != "":
		v.Headline, v.Mood = "The engine does not answer.", report.Failing
	case daemons.Engine.Refused != "":
		v.Headline, v.Mood = "The engine rejects writes.", report.Failing
	case daemons.Late():
		v.Headline, v.Mood = "The engine is slow: this member last read the records "+v.Lag+" ago, and writes nothing to AWS meanwhile.", report.Failing
	case longest > members.TooLong:
		v.Headline, v.Mood = fmt.Sprintf("%s has no owner.", plural(len(unowned), "scope or source")), report.Failing
		if len(unowned) > 1 {
			v.Headline = fmt.Sprintf("%d scopes and sources have no owner.", len(unowned))
		}
	case len(unowned) > 0:
		v.Headline, v.Mood = fmt.Sprintf("%d of %d scopes and sources have an owner. Members are taking the others.", len(daemons.Owned)-len(unowned), len(daemons.Owned)), report.Moving
	default:
		v.Headline, v.Mood = plural(len(daemons.Members), "member")+". Every scope and source has an owner.", report.Converged
	}
	return v
}

var engineNames = map[string]string{members.Alone: "the state directory", "dynamodb": "DynamoDB", "etcd": "etcd"}

// viewOfMember prepares one row of the members. far lists the members whose clocks differ too much.
func viewOfMember(m members.Member, far []members.Member) memberView {
	v := memberView{Member: m, State: "alive", Mark: report.Converged, Owns: plural(m.Scopes, "scope")}
	if m.Sources > 0 {
		v.Owns += ", " + plural(m.Sources, "source")
	}
	if m.Draining {
		v.State, v.Mark = "draining", report.Suspended
	}
	if len(m.Differs) > 0 {
		v.State, v.Mark = v.State+", "+m.DifferText(), report.Failing
	}
	if !m.Answers && (strings.HasPrefix(m.Address, "http://") || strings.HasPrefix(m.Address, "https://")) {
		v.Link = strings.TrimRight(m.Address, "/") + "/members"
	}
	switch {
	case m.Answers:
		v.Clock = "this one"
	case m.Clock == nil:
		v.Clock = "unknown yet"
	case *m.Clock < 0:
		v.Clock = span(time.Duration(-*m.Clock*float64(time.Second))) + " behind"
	default:
		v.Clock = span(time.Duration(*m.Clock*float64(time.Second))) + " ahead"
	}
	for _, f := range far {
		v.Far = v.Far || f.Name == m.Name
	}
	return v
}

// viewOfOwned prepares one row of the scopes and sources. A scope or source without an owner is marked as
// failing after members.TooLong.
func (w *views) viewOfOwned(o members.Owned) ownedView {
	v := ownedView{Owned: o, Place: o.Name(), Mark: report.Converged, Since: momentOf(w.current, o.Since)}
	if o.Owner == "" {
		if v.Mark = report.Moving; w.current.Now().Sub(o.Since) > members.TooLong {
			v.Mark = report.Failing
		}
	}
	for _, t := range o.Targets {
		link := ""
		if o.Kind == members.Scope {
			link = targetLink(t)
		}
		v.Targets = append(v.Targets, linked{t, link})
	}
	return v
}

func (w *web) members(rw http.ResponseWriter, r *http.Request) {
	w.render(rw, r, http.StatusOK, "members", w.membersView())
}

func (w *web) apiMembers(rw http.ResponseWriter, r *http.Request) {
	daemons, _ := w.memberView()
	w.sendJSON(rw, r, daemons)
}

// standing is the whole state of the daemon in one response, for administrators.
type standing struct {
	Instance string `json:"instance"`
	// Waiting lists the conditions that the daemon still waits for, until each target has had a pass.
	Waiting []string `json:"waiting"`
	// Held is the reason why weir writes nothing, missing if it may write.
	Held string `json:"held,omitempty"`
	members.View
}

func (w *web) status(rw http.ResponseWriter, r *http.Request) {
	f := w.current.Daemon.Facts()
	daemons, _ := w.memberView()
	w.sendJSON(rw, r, standing{Instance: f.Instance, Waiting: append([]string{}, w.current.Targets.Missing()...), Held: f.Unwritten, View: daemons})
}
