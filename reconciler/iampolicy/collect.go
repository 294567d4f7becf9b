package iampolicy

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
)

// Collect adds the roles and image parameters that the pools of a target name to the scope. Its notes
// describe what Git does not show.
func (s *Scope) Collect(set *intent.Set) (notes []string) {
	for i := range set.Pools {
		p := &set.Pools[i]
		if t := p.LaunchTemplate; t != nil && t.Data.IamInstanceProfile != nil {
			notes = append(notes, s.profile(*t.Data.IamInstanceProfile)...)
		}
		if p.ForeignTemplate != nil {
			notes = append(notes, "pool "+p.Key.String()+" brings its own launch template; name the role of its instance profile with --pass-role")
		}
		var hooks []intent.LifecycleHook
		if g := p.Group; g != nil {
			hooks = g.LifecycleHooks
			s.pass(g.Options.ServiceLinkedRoleARN, AutoScaling)
			s.Drains = s.Drains || g.Drainer != nil
			s.Alarms = s.Alarms || g.Refresh.AlarmSpecification != nil
		}
		if n := p.Nodegroup; n != nil {
			hooks = n.LifecycleHooks
			s.pass(s.role(n.Role.Name), EC2, EKS)
		}
		for _, h := range hooks {
			s.pass(h.RoleARN, AutoScaling)
		}
		for l := range p.Lookups() {
			if l.Kind == intent.ImageByParameter && !strings.HasPrefix(l.Name, "/aws/service/") && !slices.Contains(s.Parameters, l.Name) {
				s.Parameters = append(s.Parameters, l.Name)
			}
		}
	}
	return notes
}

// profile adds the role of an instance profile. The profile's name does not show its role, but tools that
// make both give them one name.
func (s *Scope) profile(p intent.InstanceProfile) []string {
	name := p.Name
	if _, path, ok := strings.Cut(p.ARN, ":instance-profile/"); ok {
		name = path
	}
	if name == "" {
		return nil
	}
	s.pass(s.role(name), EC2)
	return []string{"instance profile " + name + " is assumed to have the role of the same name; if not, name the role with --pass-role"}
}

// role returns the ARN of a role from its name or ARN.
func (s *Scope) role(name string) string {
	if name == "" || strings.HasPrefix(name, "arn:") {
		return name
	}
	return s.arn("iam", "", "role/"+name)
}

// pass adds services to a role. It ignores an empty ARN.
func (s *Scope) pass(arn string, services ...string) {
	if arn == "" {
		return
	}
	for i := range s.PassRoles {
		if p := &s.PassRoles[i]; p.ARN == arn {
			for _, name := range services {
				if !slices.Contains(p.Services, name) {
					p.Services = append(p.Services, name)
				}
			}
			return
		}
	}
	s.PassRoles = append(s.PassRoles, PassRole{ARN: arn, Services: services})
}

// Pass adds a role that machines of groups or nodegroups get.
func (s *Scope) Pass(arn string) { s.pass(arn, EC2, EKS) }
