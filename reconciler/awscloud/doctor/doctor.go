// Package doctor checks weir's assumptions about AWS in a real account.
//
// An emulator was the reference for weir. The page of assumptions (deploy/docs/reference/assumptions.md)
// lists by name everything that was never verified in a real account. A visit checks each assumption and
// reports AWS's answer: as assumed, different, or not seen and why.
//
// # Rules
//
// A visit reads. Only with permission does it make resources: launch templates, one Auto Scaling group of
// the smallest machines and, if a cluster is named, two nodegroups without machines. Each resource has a
// unique name (Prefix, the visit's number and a suffix) and has the tags Tag and owner, with Instance as the
// owner. So the IAM policy that weir prints for that instance is sufficient. A visit deletes exactly the
// resources with its own number, even if it is interrupted or the answer to a creation was lost. The report
// lists what it could not delete.
//
// A check that is not possible is no error. The finding contains AWS's answer instead. Texts of AWS appear
// unchanged in the report, except for the account's number.
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

// The names and tags of a visit's resources.
const (
	// Instance is the name of the weir instance whose policy a visit needs.
	Instance = "weir-doctor"
	// Prefix is the start of the name of each resource.
	Prefix = "weir-doctor-"
	// Tag has the visit's number as its value.
	Tag = "weir.dev/doctor"
)

// Options define what a visit may do.
type Options struct {
	// Apply allows making, rolling and deleting resources.
	Apply bool
	// Number distinguishes visits: letters and digits. It is required.
	Number string
	// InstanceType is the type of the group's machines (default t3.micro). OtherType is the type
	// that replaces it (default t3.small).
	InstanceType, OtherType string
	// Subnet is the subnet of the machines. It defaults to a default subnet.
	Subnet string
	// Cluster is the cluster and NodeRole the role ARN of the nodegroups. If they are empty, no nodegroups
	// are made.
	Cluster, NodeRole string
	// Progress receives the current activity. It may be nil.
	Progress func(string)
	// Wait waits before the next request. By default it waits in real time, or until ctx ends.
	Wait func(context.Context, time.Duration) error
	Now  func() time.Time
}

// Verdict is the result for an assumption.
type Verdict string

// The verdicts. If several checks concern one assumption, the first of these wins.
const (
	Differs   Verdict = "differs"
	AsAssumed Verdict = "as-assumed"
	NotSeen   Verdict = "not-seen"
)

// Finding is the result of a visit for one assumption.
type Finding struct {
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	// Evidence contains AWS's answers, or the reason why nothing was requested.
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
	// Left lists the resources that the visit could not delete, with the reasons.
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

// evidence is the maximum number of characters of AWS's text in a report.
const evidence = 500

// visit is a visit in progress.
type visit struct {
	Options

	calls calls

	left []string
	// wasRead says that all checks that only read have run.
	wasRead bool
	notes   notes
}

// notes contains the findings of a visit.
type notes struct {
	client *sdk.Client
	found  map[string]*Finding
}

// Clock records the times of AWS's answers. Its OnCall must be set in the options of the visit's client.
type Clock struct {
	mu    sync.Mutex
	calls []sdk.CallInfo
	at    []time.Time
}

// OnCall records a call.
func (c *Clock) OnCall(info sdk.CallInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls, c.at = append(c.calls, info), append(c.at, time.Now())
}

// ValidNumber reports whether a text is a valid visit number.
func ValidNumber(s string) bool {
	return s != "" && strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// Visit checks every assumption. It fails only if it cannot start. If ctx ends, the checks stop, and the
// visit's resources are still deleted.
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

// wait waits for a time, or until ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// findings returns the verdict on each assumption, in the order of the documentation page that lists the assumptions.
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

// whyNot returns why an assumption was not checked.
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

// format formats a text for a report and removes the account's number from it.
func (n *notes) format(format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	if account := n.client.Account(); account != "" {
		text = strings.ReplaceAll(text, account, "ACCOUNT")
	}
	return text
}

// note records the finding of a check.
func (n *notes) note(name string, verdict Verdict, format string, args ...any) {
	if !slices.ContainsFunc(assumptions, func(a assumption) bool { return a.name == name }) {
		panic("doctor: no assumption is called " + name)
	}
	text := n.format(format, args...)
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

// judge records whether AWS behaves as assumed.
func (n *notes) judge(name string, asAssumed bool, format string, args ...any) {
	verdict := Differs
	if asAssumed {
		verdict = AsAssumed
	}
	n.note(name, verdict, format, args...)
}

// refused reports whether a call that a check needs was refused, and records that.
func (n *notes) refused(name, service, operation string, err error) bool {
	e := sdk.Classify(service, operation, err)
	if e == nil {
		return false
	}
	n.note(name, NotSeen, "%s", e.Error())
	return true
}

// until repeats done until it returns true, and reports whether it did so in time.
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
