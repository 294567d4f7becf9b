package terminal

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/weir-gitops/weir/status/instances"
	"github.com/weir-gitops/weir/status/wording"
)

// Instance prints an instance, a line for each fact and the most important first.
func (p Printer) Instance(a instances.Answer, now time.Time) {
	facts := append(mainFacts(a, now), moreFacts(a, now)...)
	widest := 0
	for _, f := range facts {
		if f[1] != "" {
			widest = max(widest, len(f[0]))
		}
	}
	for _, f := range facts {
		if f[1] != "" {
			p.line(p.paint(bold, f[0]+":"), strings.Repeat(" ", widest-len(f[0])+1), wording.Clean(f[1]))
		}
	}
	for _, n := range a.Notes {
		p.Note(n)
	}
}

// mainFacts returns the facts that people need first: what the instance runs, and why it exists. A fact
// without a value is not shown.
func mainFacts(a instances.Answer, now time.Time) [][2]string {
	i := a.Instance
	pool := ""
	if a.Pool != "" {
		pool = a.Namespace + "/" + a.Pool + joined(", target ", a.Target) + joined(", cluster ", a.Cluster) + joined(", weir instance ", a.Owner)
	}
	commit, image, age := "", i.ImageID, ""
	if c := a.Commit; c != nil {
		commit = strings.TrimSpace(c.Revision + " " + c.Subject)
	}
	kind := i.Type
	if f := a.AWS; f != nil {
		kind += joined(", ", f.Market)
		if f.Image != nil {
			image += joined(" ", f.Image.Name)
			if at := f.Image.CreatedAt; !at.IsZero() {
				image += ", made " + moments(at, now)
			}
		}
		if !f.LaunchedAt.IsZero() {
			age = ago(now.Sub(f.LaunchedAt)) + ", launched " + f.LaunchedAt.UTC().Format(time.RFC3339)
		}
	}
	state := i.State
	if i.Health != "" && i.Health != "Healthy" {
		state += ", " + i.Health
	}
	return [][2]string{
		{"instance", i.ID}, {"pool", pool}, {"commit", commit}, {"image", image}, {"age", age}, {"type", kind}, {"zone", i.Zone}, {"state", state}, {"why", i.Why}, {"draining", drainOf(a)},
	}
}

// moreFacts returns the remaining facts.
func moreFacts(a instances.Answer, now time.Time) [][2]string {
	i := a.Instance
	template := i.LaunchConfiguration
	if i.TemplateVersion != "" {
		template = cmp.Or(a.LaunchTemplateID, "launch template") + " version " + i.TemplateVersion
		if current := a.CurrentTemplateVersion; current != "" && current != i.TemplateVersion && i.LaunchTemplateID == "" {
			template += ", new instances get " + current
		}
	}
	address, ec2 := "", ""
	if f := a.AWS; f != nil {
		address = f.PrivateIP + joined(", ", f.PrivateDNS)
		ec2 = f.State + joined(", ", f.StateReason)
	}
	read := ""
	if !a.PoolsAt.IsZero() {
		read = moments(a.PoolsAt, now)
	}
	return [][2]string{
		{"template", template}, {"node", i.Node}, {"address", strings.TrimPrefix(address, ", ")}, {"EC2 state", ec2}, {"group", a.Group}, {"nodegroup", a.Nodegroup},
		{"account", a.Account + joined(", region ", a.Region)}, {"last read", read},
	}
}

// drainOf describes the drain of an instance, empty if it is not being drained.
func drainOf(a instances.Answer) string {
	d := a.Draining
	if d == nil {
		return ""
	}
	text := wording.Count(d.PodsLeft, "pod") + " left"
	if !d.Until.IsZero() {
		text += ", terminated at the latest " + d.Until.UTC().Format(time.RFC3339)
	}
	return text + joined("; ", d.Why)
}

func joined(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// moments formats a time with its distance from now.
func moments(t, now time.Time) string {
	return fmt.Sprintf("%s (%s ago)", t.UTC().Format(time.RFC3339), ago(now.Sub(t)))
}
