package asg

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// GroupGraft contains the facts about a group in another AWS, for a group that a call has made without
// machines.
type GroupGraft struct {
	Name         string
	Created      time.Time
	Min, Desired int64
	Members      []MemberGraft
	// Refresh is the newest refresh if it has ended.
	Refresh *RefreshGraft
}

// MemberGraft is a machine of a group.
type MemberGraft struct {
	ID, Type, Zone    string
	Template          TemplateSpec
	Lifecycle, Health string
	Protected         bool
	Served            time.Time // time at which it came into service
}

// RefreshGraft is an instance refresh that has ended.
type RefreshGraft struct {
	ID, Status, Reason string
	Start, End         time.Time
	Percent, Left      int64
	// Version is the launch template version of its desired configuration, or "".
	Version string
}

// GraftGroup adds machines to a group.
func (r *Region) GraftGroup(s GroupGraft) error {
	g := r.Groups.Get(s.Name)
	if g == nil || len(g.Members) > 0 {
		return fmt.Errorf("group %q: there is no empty one", s.Name)
	}
	g.Created, g.Min, g.Desired, g.Cause = s.Created, s.Min, s.Desired, ""
	choices, err := r.choices(g.Config)
	if err != nil {
		return fmt.Errorf("group %q: %s", s.Name, err.Message)
	}
	for _, m := range s.Members {
		if err := r.graftMember(g, m, choices); err != nil {
			return fmt.Errorf("group %q: %w", s.Name, err)
		}
	}
	if f := s.Refresh; f != nil {
		made := &refresh{ID: f.ID, Status: f.Status, Reason: f.Reason, Start: f.Start, End: f.End, Percent: f.Percent, Left: f.Left, FirstSeq: g.Launched,
			Prefs: refreshPrefs{MinHealthy: 90, SkipMatching: true}}
		if f.Version != "" {
			desired := g.Config.at(f.Version)
			made.Desired = &desired
		}
		g.Refreshes = append(g.Refreshes, made)
	}
	return nil
}

// at returns the configuration with another version of its template.
func (c GroupConfig) at(version string) GroupConfig {
	if c.Mixed != nil {
		mixed := *c.Mixed
		mixed.Base.Version = version
		c.Mixed = &mixed
	} else if c.Template != nil {
		spec := *c.Template
		spec.Version = version
		c.Template = &spec
	}
	return c
}

func (r *Region) graftMember(g *Group, s MemberGraft, choices []Choice) error {
	state := ec2.InstanceRunning
	switch {
	case strings.HasPrefix(s.Lifecycle, memberPending):
		s.Lifecycle, state = memberPending, ec2.InstancePending
	case strings.HasPrefix(s.Lifecycle, memberTerminating):
		s.Lifecycle, state = memberTerminating, ec2.InstanceShuttingDown
	}
	tags := world.Tags{}
	tags.Set(tagGroupName, g.Name)
	in, err := r.ec2.GraftInstance(ec2.InstanceGraft{
		ID: s.ID, Type: s.Type, Zone: s.Zone, Template: s.Template.ID, Version: wire.Data{"v": s.Template.Version}.Integer("v"),
		Launched: s.Served, State: state, Subnets: g.Subnets, Owner: g.owner(), Tags: tags,
	})
	if err != nil {
		return err
	}
	choice := choices[0]
	for _, ch := range choices {
		if ch.instanceType == s.Type {
			choice = ch
			break
		}
	}
	m := g.newMember(&choice, in)
	m.Lifecycle, m.Health, m.Protected, m.Template, m.Served, m.OwnImage = s.Lifecycle, s.Health, s.Protected, s.Template, s.Served, choice.imageID != ""
	g.Members = append(g.Members, m)
	return nil
}
