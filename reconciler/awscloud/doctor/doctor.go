// Package doctor asks an account of AWS about what weir takes for granted.
//
// weir was made against an emulator, and what nobody has seen in a real account stands
// on the page of assumptions (deploy/docs/reference/assumptions.md), each under a name.
// A visit asks AWS about each of them and says what it answered: as assumed, otherwise,
// or not seen and why.
//
// # Rules
//
// A visit reads. Only where it may apply does it make things: launch templates, one
// Auto Scaling group of the smallest machines and, where a cluster is named, two
// nodegroups without machines. Everything that it makes has a name of its own
// (Prefix, the visit's number and what it is) and carries Tag and the owner's tag of the instance
// Instance, so that the policy that weir prints for that instance is enough. It deletes
// what carries its own number and nothing else, also when it is interrupted and when
// the answer to a creation was lost; what it could not delete stands in the report.
//
// A check that cannot be made is no fault: the finding says what AWS answered instead.
// Texts of AWS stand in a report as they came, but for the account's number.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
)

// Names and tags of what a visit makes.
const (
	// Instance is the name of the weir instance whose policy a visit needs.
	Instance = "weir-doctor"
	// Prefix begins the name of everything that a visit makes.
	Prefix = "weir-doctor-"
	// Tag holds the visit's number.
	Tag = "weir.dev/doctor"
)

// Options say what a visit may do.
type Options struct {
	// Apply allows making, rolling and deleting things.
	Apply bool
	// Number distinguishes visits: letters and digits. It is required.
	Number string
	// InstanceType is the type of the group's machines (default t3.micro). OtherType is the type
	// that replaces it (default t3.small).
	InstanceType, OtherType string
	// Subnet holds the machines; empty takes a default one.
	Subnet string
	// Cluster and NodeRole, an ARN, are those of the nodegroups; empty makes none.
	Cluster, NodeRole string
	// Progress gets what is being done; nil for nobody.
	Progress func(string)
	// Wait lets time pass until AWS is asked again (default: until it has passed, or ctx ends).
	Wait func(context.Context, time.Duration) error
	Now  func() time.Time
}

// Verdict says what became of an assumption.
type Verdict string

// The verdicts. Where several checks touch one assumption, the first of these counts.
const (
	Differs   Verdict = "differs"
	AsAssumed Verdict = "as-assumed"
	NotSeen   Verdict = "not-seen"
)

// Finding is the result of a visit for one assumption.
type Finding struct {
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	// Evidence holds AWS's answers, or the reason for no request.
	Evidence []string `json:"evidence"`
}

// Report is the result of a visit.
type Report struct {
	Schema   string    `json:"schema"`
	Region   string    `json:"region"`
	Applied  bool      `json:"applied"`
	Began    time.Time `json:"began"`
	Ended    time.Time `json:"ended"`
	Findings []Finding `json:"findings"`
	// Left lists the resources that the visit made and could not delete, with the reason.
	Left []string `json:"left"`
	// Calls counts the requests to AWS, by "service:Operation".
	Calls map[string]int `json:"calls"`
}

// Count returns how many assumptions have a verdict.
func (r *Report) Count(v Verdict) (n int) {
	for _, f := range r.Findings {
		if f.Verdict == v {
			n++
		}
	}
	return n
}

// evidence is the number of characters of AWS's text that a report keeps.
const evidence = 500

// visit is one visit under way.
type visit struct {
	Options

	calls calls

	left []string
	// wasRead says that all checks that read were made.
	wasRead bool
	notes   notes
}

// notes holds the findings of a visit.
type notes struct {
	client *sdk.Client
	found  map[string]*Finding
}

// Clock hears when AWS answered which call: its OnCall belongs into the options of the
// client that a visit gets.
type Clock struct {
	mu    sync.Mutex
	calls []sdk.CallInfo
	at    []time.Time
}

// OnCall takes a call.
func (c *Clock) OnCall(info sdk.CallInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls, c.at = append(c.calls, info), append(c.at, time.Now())
}

// ValidNumber reports whether a text may be a visit's number.
func ValidNumber(s string) bool {
	return s != "" && strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// Visit asks about every assumption. The error is for a visit that could not begin; ctx
// that ends stops the checks, and what was made is deleted even so.
func Visit(ctx context.Context, client *sdk.Client, clock *Clock, o Options) (*Report, error) {
	if !ValidNumber(o.Number) {
		return nil, fmt.Errorf("the number of a visit is letters and digits, not %q", o.Number)
	}
	o = o.withDefaults()
	v := &visit{Options: o, notes: notes{client, map[string]*Finding{}}, calls: callsOf(client), left: []string{}}
	report := &Report{Schema: "weir.dev/doctor/v1", Region: client.Region(), Applied: o.Apply, Began: o.Now()}
	v.read(ctx)
	if o.Apply {
		v.apply(ctx)
	}
	v.notes.times(clock)
	report.Findings, report.Left, report.Calls, report.Ended = v.findings(ctx), v.left, client.CallCounts(), o.Now()
	return report, nil
}

func (o Options) withDefaults() Options {
	o.InstanceType, o.OtherType = cmp.Or(o.InstanceType, "t3.micro"), cmp.Or(o.OtherType, "t3.small")
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait == nil {
		o.Wait = wait
	}
	return o
}

// wait lets time pass.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// findings gives each assumption its verdict, in the order of the page.
func (v *visit) findings(ctx context.Context) (out []Finding) {
	for _, a := range assumptions {
		f := v.notes.found[a.name]
		if f == nil {
			f = &Finding{Name: a.name, Verdict: NotSeen, Evidence: []string{v.whyNot(ctx, a)}}
		}
		out = append(out, *f)
	}
	return out
}

// whyNot says why nothing was found about an assumption.
func (v *visit) whyNot(ctx context.Context, a assumption) string {
	switch {
	case a.never != "":
		return a.never
	case ctx.Err() != nil && (a.needs != reads || !v.wasRead):
		return "the visit was interrupted"
	case a.needs != reads && !v.Apply:
		return "asked with --apply only"
	case a.needs == nodegroups && v.Cluster == "":
		return "asked with --apply, --cluster and --node-role only"
	}
	return cmp.Or(a.absent, "the check was not reached: see what differs or was refused above")
}

// told returns a text for a report without the account's number.
func (n *notes) told(format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	if account := n.client.Account(); account != "" {
		text = strings.ReplaceAll(text, account, "ACCOUNT")
	}
	return text
}

// note takes down what a check found.
func (n *notes) note(name string, verdict Verdict, format string, args ...any) {
	if !slices.ContainsFunc(assumptions, func(a assumption) bool { return a.name == name }) {
		panic("doctor: no assumption is called " + name)
	}
	text := n.told(format, args...)
	if runes := []rune(text); len(runes) > evidence {
		text = string(runes[:evidence]) + "…"
	}
	f := n.found[name]
	if f == nil {
		n.found[name] = &Finding{Name: name, Verdict: verdict, Evidence: []string{text}}
		return
	}
	rank := []Verdict{Differs, AsAssumed, NotSeen}
	if slices.Index(rank, verdict) < slices.Index(rank, f.Verdict) {
		f.Verdict = verdict
	}
	if !slices.Contains(f.Evidence, text) {
		f.Evidence = append(f.Evidence, text)
	}
}

// judge notes whether AWS did as assumed.
func (n *notes) judge(name string, asAssumed bool, format string, args ...any) {
	verdict := Differs
	if asAssumed {
		verdict = AsAssumed
	}
	n.note(name, verdict, format, args...)
}

// refused notes that a call that a check needs was refused, and reports whether it was.
func (n *notes) refused(name, service, operation string, err error) bool {
	e := sdk.Classify(service, operation, err)
	if e == nil {
		return false
	}
	n.note(name, NotSeen, "%s", e.Error())
	return true
}

// until asks again and again until done says yes, and reports whether it did in time.
func (v *visit) until(ctx context.Context, atMost time.Duration, done func() bool) bool {
	const every = 5 * time.Second
	for passed := time.Duration(0); ; passed += every {
		if done() {
			return true
		}
		if passed >= atMost || v.Wait(ctx, every) != nil {
			return false
		}
	}
}
