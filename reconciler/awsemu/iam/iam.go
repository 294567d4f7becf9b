// Package iam emulates the part of IAM that reads roles and instance profiles, and attaches AWS's own
// policies to roles. They belong to an account and are the same in all its regions.
package iam

import (
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// Role is an IAM role.
type Role struct {
	Name    string
	ID      string
	Path    string
	ARN     string
	Trust   string // the service that may assume the role
	Created time.Time
	// Policies are the names of the attached AWS policies, sorted.
	Policies []string
}

// InstanceProfile is an IAM instance profile. Its role has the same name.
type InstanceProfile struct {
	Name    string
	ID      string
	Path    string
	ARN     string
	Role    string
	Created time.Time
}

// nodePolicies returns the names of the AWS policies of a node's role. clusterawsadm attaches the same ones.
func nodePolicies() []string {
	return []string{"AmazonEC2ContainerRegistryReadOnly", "AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy"}
}

// AddRole adds a role without a path, which a service may assume. A role for instances gets the node
// policies.
func (a *Account) AddRole(name, trust string, created time.Time) *Role {
	ro := &Role{
		Name: name, Path: "/", Trust: trust, Created: created,
		ID:  "AROA" + strings.ToUpper(world.Hash("role|"+a.ID+"|"+name, 17)),
		ARN: "arn:aws:iam::" + a.ID + ":role/" + name,
	}
	if trust == "ec2.amazonaws.com" {
		ro.Policies = nodePolicies()
	}
	a.Roles[name] = ro
	return ro
}

// AddInstanceProfile adds an instance profile with a role.
func (a *Account) AddInstanceProfile(name, roleName string, created time.Time) {
	a.InstanceProfiles[name] = &InstanceProfile{
		Name: name, Path: "/", Role: roleName, Created: created,
		ID:  "AIPA" + strings.ToUpper(world.Hash("profile|"+a.ID+"|"+name, 17)),
		ARN: "arn:aws:iam::" + a.ID + ":instance-profile/" + name,
	}
}

// Assumable returns the role that AssumeRole may assume, or nil. Path is the part of the ARN after role/. In
// accounts other than the default one, every role exists.
func (a *Account) Assumable(path string, now time.Time) *Role {
	name := path[strings.LastIndex(path, "/")+1:]
	if ro := a.Roles[name]; ro != nil {
		return ro
	}
	if a.ID == DefaultAccount || name == "" {
		return nil
	}
	return a.AddRole(name, "sts.amazonaws.com", now)
}

// HasRoleARN reports whether the ARN belongs to one of the account's roles.
func (a *Account) HasRoleARN(arn string) bool {
	ro := a.Roles[arn[strings.LastIndex(arn, "/")+1:]]
	return ro != nil && ro.ARN == arn
}

// Profile finds an instance profile by name or ARN.
func (a *Account) Profile(nameOrARN string) *InstanceProfile {
	p := a.InstanceProfiles[nameOrARN[strings.LastIndex(nameOrARN, "/")+1:]]
	if p == nil || strings.HasPrefix(nameOrARN, "arn:") && p.ARN != nameOrARN {
		return nil
	}
	return p
}

// request is a call to the service.
type request = wire.Request[*Region]

// Service returns the part of IAM that reads roles and instance profiles.
func Service() *wire.Service {
	return wire.NewService("iam", wire.QueryDialect(),
		wire.FormOp("GetRole", wire.Reads, getRole),
		wire.FormOp("ListRoles", wire.Reads, listRoles),
		wire.FormOp("ListRolePolicies", wire.Reads, listRolePolicies),
		wire.FormOp("ListInstanceProfilesForRole", wire.Reads, listInstanceProfilesForRole),
		wire.FormOp("AttachRolePolicy", wire.Writes, attachRolePolicy),
		wire.FormOp("DetachRolePolicy", wire.Writes, detachRolePolicy),
		wire.FormOp("ListAttachedRolePolicies", wire.Reads, listAttachedRolePolicies),
		wire.FormOp("GetInstanceProfile", wire.Reads, getInstanceProfile),
	)
}

func getRole(rq *request, in struct{ RoleName string }) error {
	ro := rq.Region.Entities.Roles[in.RoleName]
	if ro == nil {
		return wire.Fail("NoSuchEntity", "The role with name %s cannot be found.", in.RoleName)
	}
	rq.XML.Open("Role")
	writeRole(&rq.XML, ro)
	rq.XML.Close("Role")
	return nil
}

type rolePolicyInput struct{ RoleName, PolicyARN string }

// find returns the role and the name of one of AWS's policies. The emulator has no other policies.
func (in rolePolicyInput) find(rq *request) (*Role, string, error) {
	ro := rq.Region.Entities.Roles[in.RoleName]
	if ro == nil {
		return nil, "", wire.Fail("NoSuchEntity", "The role with name %s cannot be found.", in.RoleName)
	}
	_, name, ok := strings.Cut(in.PolicyARN, ":iam::aws:policy/")
	if !ok || name == "" {
		return nil, "", wire.Fail("NoSuchEntity", "Policy %s does not exist or is not attachable.", in.PolicyARN)
	}
	return ro, name, nil
}

func attachRolePolicy(rq *request, in rolePolicyInput) error {
	ro, name, err := in.find(rq)
	if err != nil {
		return err
	}
	if !slices.Contains(ro.Policies, name) {
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
		return wire.Fail("NoSuchEntity", "Policy %s was not found.", in.PolicyARN)
	}
	ro.Policies = left
	return nil
}

func listAttachedRolePolicies(rq *request, in struct {
	ofRole
	PathPrefix string // AWS's policies in the emulator have the path /
},
) error {
	if err := in.find(rq); err != nil {
		return err
	}
	return in.list(rq, "AttachedPolicies", rq.Region.Entities.Roles[in.RoleName].Policies, func(name string) {
		rq.XML.Open("member")
		rq.XML.Text("PolicyName", name)
		rq.XML.Text("PolicyArn", rq.Region.PolicyARN(name))
		rq.XML.Close("member")
	})
}

// PolicyARN returns the ARN of one of AWS's policies.
func (r *Region) PolicyARN(name string) string {
	return "arn:" + world.Partition(r.Name) + ":iam::aws:policy/" + name
}

func getInstanceProfile(rq *request, in struct{ InstanceProfileName string }) error {
	p := rq.Region.Entities.InstanceProfiles[in.InstanceProfileName]
	if p == nil {
		return wire.Fail("NoSuchEntity", "Instance Profile %s cannot be found.", in.InstanceProfileName)
	}
	rq.XML.Open("InstanceProfile")
	writeProfile(rq, p)
	rq.XML.Close("InstanceProfile")
	return nil
}

func writeProfile(rq *request, p *InstanceProfile) {
	w := &rq.XML
	w.Text("Path", p.Path)
	w.Text("InstanceProfileName", p.Name)
	w.Text("InstanceProfileId", p.ID)
	w.Text("Arn", p.ARN)
	w.Time("CreateDate", p.Created)
	w.Open("Roles")
	if ro := rq.Region.Entities.Roles[p.Role]; ro != nil {
		w.Open("member")
		writeRole(w, ro)
		w.Close("member")
	}
	w.Close("Roles")
}

func writeRole(w *wire.XML, ro *Role) {
	w.Text("Path", ro.Path)
	w.Text("RoleName", ro.Name)
	w.Text("RoleId", ro.ID)
	w.Text("Arn", ro.ARN)
	w.Time("CreateDate", ro.Created)
	// IAM returns policy documents percent-encoded.
	w.Text("AssumeRolePolicyDocument", "%7B%22Version%22%3A%222012-10-17%22%2C%22Statement%22%3A%5B%7B%22Effect%22%3A%22Allow%22%2C%22Principal%22%3A%7B%22Service%22%3A%22"+
		ro.Trust+"%22%7D%2C%22Action%22%3A%22sts%3AAssumeRole%22%7D%5D%7D")
	w.Integer("MaxSessionDuration", 3600)
}

// OfNodes reports whether the role has the policies that EKS requires for nodes.
func (ro *Role) OfNodes() bool {
	return slices.Contains(ro.Policies, "AmazonEKSWorkerNodePolicy") &&
		(slices.Contains(ro.Policies, "AmazonEC2ContainerRegistryReadOnly") || slices.Contains(ro.Policies, "AmazonEC2ContainerRegistryPullOnly"))
}

// Account holds the entities that are not regional.
type Account struct {
	ID               string
	Roles            map[string]*Role
	InstanceProfiles map[string]*InstanceProfile
}

// Region is the IAM part of a region. An account's entities are the same in all regions.
type Region struct {
	*world.Region
	Entities *Account
}

// DefaultAccount is the account of every access key that STS did not issue.
const DefaultAccount = "000000000000"

// NewAccount returns an account with the roles and instance profiles that clusterawsadm creates by default.
func NewAccount(id string) *Account {
	a := &Account{ID: id, Roles: map[string]*Role{}, InstanceProfiles: map[string]*InstanceProfile{}}
	const suffix = ".cluster-api-provider-aws.sigs.k8s.io"
	for _, name := range []string{"nodes", "control-plane", "controllers"} {
		a.AddRole(name+suffix, "ec2.amazonaws.com", world.SeedTime())
		a.AddInstanceProfile(name+suffix, name+suffix, world.SeedTime())
	}
	a.AddRole("eks-nodegroup"+suffix, "ec2.amazonaws.com", world.SeedTime())
	a.AddRole("eks-controlplane"+suffix, "eks.amazonaws.com", world.SeedTime())
	return a
}
