package awsemu

import (
	"sort"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
)

// role is an IAM role.
type role struct {
	Name    string
	ID      string
	Path    string
	ARN     string
	Trust   string // the service that may assume it
	Created time.Time
	// Policies are the names of AWS's own policies that are attached, sorted.
	Policies []string
}

// instanceProfile is an IAM instance profile; its role has the same name.
type instanceProfile struct {
	Name    string
	ID      string
	Path    string
	ARN     string
	Role    string
	Created time.Time
}

// nodePolicies are the names of AWS's policies that a node's role has, as
// clusterawsadm attaches them.
func nodePolicies() []string {
	return []string{"AmazonEC2ContainerRegistryReadOnly", "AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy"}
}

// addRole adds a role without path, trusted by a service. One that machines may have
// has the policies of nodes.
func (a *account) addRole(name, trust string, created time.Time) *role {
	ro := &role{
		Name: name, Path: "/", Trust: trust, Created: created,
		ID:  "AROA" + upperHex(hashHex("role|"+a.ID+"|"+name, 17)),
		ARN: "arn:aws:iam::" + a.ID + ":role/" + name,
	}
	if trust == "ec2.amazonaws.com" {
		ro.Policies = nodePolicies()
	}
	a.Roles[name] = ro
	return ro
}

// addInstanceProfile adds an instance profile around a role.
func (a *account) addInstanceProfile(name, roleName string, created time.Time) {
	a.InstanceProfiles[name] = &instanceProfile{
		Name: name, Path: "/", Role: roleName, Created: created,
		ID:  "AIPA" + upperHex(hashHex("profile|"+a.ID+"|"+name, 17)),
		ARN: "arn:aws:iam::" + a.ID + ":instance-profile/" + name,
	}
}

// assumable returns the role that AssumeRole may lead into, nil for none. Path is
// the part of the ARN after role/. In accounts other than the default one, every
// role is there to be assumed.
func (a *account) assumable(path string) *role {
	name := path[strings.LastIndex(path, "/")+1:]
	if ro := a.Roles[name]; ro != nil {
		return ro
	}
	if a.ID == defaultAccount || name == "" {
		return nil
	}
	return a.addRole(name, "sts.amazonaws.com", a.srv.now)
}

// hasRoleARN says whether an ARN is that of one of the account's roles.
func (a *account) hasRoleARN(arn string) bool {
	ro := a.Roles[arn[strings.LastIndex(arn, "/")+1:]]
	return ro != nil && ro.ARN == arn
}

// profile finds an instance profile by name or ARN.
func (a *account) profile(nameOrARN string) *instanceProfile {
	p := a.InstanceProfiles[nameOrARN[strings.LastIndex(nameOrARN, "/")+1:]]
	if p == nil || strings.HasPrefix(nameOrARN, "arn:") && p.ARN != nameOrARN {
		return nil
	}
	return p
}

// iamService is the part of IAM that reads roles and instance profiles.
func iamService() *service {
	sv := &service{Service: model.Services()["iam"], dialect: queryDialect()}
	sv.register(
		queryOp("GetRole", reads, func(p *params) string { return p.text("RoleName") }, getRole),
		queryOp("AttachRolePolicy", writes, parseRolePolicy, attachRolePolicy),
		queryOp("DetachRolePolicy", writes, parseRolePolicy, detachRolePolicy),
		queryOp("ListAttachedRolePolicies", reads, parseListPolicies, listAttachedRolePolicies),
		queryOp("GetInstanceProfile", reads, func(p *params) string { return p.text("InstanceProfileName") }, getInstanceProfile),
	)
	return sv
}

func getRole(rq *request, name string) error {
	ro := rq.account().Roles[name]
	if ro == nil {
		return fail("NoSuchEntity", "The role with name %s cannot be found.", name)
	}
	rq.xml.open("Role")
	rq.xml.writeRole(ro)
	rq.xml.close("Role")
	return nil
}

type rolePolicyInput struct{ role, policy string }

func parseRolePolicy(p *params) rolePolicyInput {
	return rolePolicyInput{role: p.text("RoleName"), policy: p.text("PolicyArn")}
}

// find returns the role and the name of one of AWS's policies; the emulator has no
// others.
func (in rolePolicyInput) find(rq *request) (*role, string, error) {
	ro := rq.account().Roles[in.role]
	if ro == nil {
		return nil, "", fail("NoSuchEntity", "The role with name %s cannot be found.", in.role)
	}
	_, name, ok := strings.Cut(in.policy, ":iam::aws:policy/")
	if !ok || name == "" {
		return nil, "", fail("NoSuchEntity", "Policy %s does not exist or is not attachable.", in.policy)
	}
	return ro, name, nil
}

func attachRolePolicy(rq *request, in rolePolicyInput) error {
	ro, name, err := in.find(rq)
	if err != nil {
		return err
	}
	if !contains(ro.Policies, name) {
		ro.Policies = append(append([]string(nil), ro.Policies...), name)
		sort.Strings(ro.Policies)
	}
	return nil
}

func detachRolePolicy(rq *request, in rolePolicyInput) error {
	ro, name, err := in.find(rq)
	if err != nil {
		return err
	}
	var left []string
	for _, p := range ro.Policies {
		if p != name {
			left = append(left, p)
		}
	}
	if len(left) == len(ro.Policies) {
		return fail("NoSuchEntity", "Policy %s was not found.", in.policy)
	}
	ro.Policies = left
	return nil
}

type listPoliciesInput struct {
	role, token string
	limit       int
}

func parseListPolicies(p *params) listPoliciesInput {
	p.text("PathPrefix") // AWS's policies that the emulator knows have the path /
	in := listPoliciesInput{role: p.text("RoleName"), token: p.text("Marker"), limit: 100}
	if n := p.optionalInt("MaxItems"); n != nil {
		in.limit = int(*n)
	}
	return in
}

func listAttachedRolePolicies(rq *request, in listPoliciesInput) error {
	ro := rq.account().Roles[in.role]
	if ro == nil {
		return fail("NoSuchEntity", "The role with name %s cannot be found.", in.role)
	}
	w := &rq.xml
	w.open("AttachedPolicies")
	next, err := rq.page(ro.Policies, in.token, in.limit, func(name string) bool {
		w.open("member")
		w.text("PolicyName", name)
		w.text("PolicyArn", rq.region.policyARN(name))
		w.close("member")
		return true
	})
	if err != nil {
		return err
	}
	w.close("AttachedPolicies")
	w.boolean("IsTruncated", next != "")
	w.optional("Marker", next)
	return nil
}

// policyARN is the ARN of one of AWS's policies.
func (r *region) policyARN(name string) string {
	return "arn:" + partition(r.Name) + ":iam::aws:policy/" + name
}

func getInstanceProfile(rq *request, name string) error {
	p := rq.account().InstanceProfiles[name]
	if p == nil {
		return fail("NoSuchEntity", "Instance Profile %s cannot be found.", name)
	}
	w := &rq.xml
	w.open("InstanceProfile")
	w.text("Path", p.Path)
	w.text("InstanceProfileName", p.Name)
	w.text("InstanceProfileId", p.ID)
	w.text("Arn", p.ARN)
	w.time("CreateDate", p.Created)
	w.open("Roles")
	if ro := rq.account().Roles[p.Role]; ro != nil {
		w.open("member")
		w.writeRole(ro)
		w.close("member")
	}
	w.close("Roles")
	w.close("InstanceProfile")
	return nil
}

func (w *xmlWriter) writeRole(ro *role) {
	w.text("Path", ro.Path)
	w.text("RoleName", ro.Name)
	w.text("RoleId", ro.ID)
	w.text("Arn", ro.ARN)
	w.time("CreateDate", ro.Created)
	// IAM hands policy documents out percent-encoded.
	w.text("AssumeRolePolicyDocument", "%7B%22Version%22%3A%222012-10-17%22%2C%22Statement%22%3A%5B%7B%22Effect%22%3A%22Allow%22%2C%22Principal%22%3A%7B%22Service%22%3A%22"+
		ro.Trust+"%22%7D%2C%22Action%22%3A%22sts%3AAssumeRole%22%7D%5D%7D")
	w.integer("MaxSessionDuration", 3600)
}

// upperHex writes hexadecimal digits with the letters of AWS's key ids.
func upperHex(s string) string { return strings.ToUpper(s) }
