package awsemu

import (
	"strings"
	"time"
)

// role is an IAM role.
type role struct {
	Name    string
	ID      string
	Path    string
	ARN     string
	Trust   string // the service that may assume it
	Created time.Time
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

// addRole adds a role without path, trusted by a service.
func (a *account) addRole(name, trust string, created time.Time) *role {
	ro := &role{
		Name: name, Path: "/", Trust: trust, Created: created,
		ID:  "AROA" + upperHex(hashHex("role|"+a.ID+"|"+name, 17)),
		ARN: "arn:aws:iam::" + a.ID + ":role/" + name,
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
	sv := &service{
		name: "iam", version: "2010-05-08", namespace: "https://iam.amazonaws.com/doc/2010-05-08/",
		protocol: protocolQuery, dialect: queryDialect(),
	}
	sv.register(
		queryOp("GetRole", reads, func(p *params) string { return iamName(p, "RoleName", 64) }, getRole),
		queryOp("GetInstanceProfile", reads, func(p *params) string { return iamName(p, "InstanceProfileName", 128) }, getInstanceProfile),
	)
	return sv
}

func iamName(p *params, name string, longest int) string {
	v := p.required(name)
	if v != "" && (len(v) > longest || !consistsOf(v, alphanumeric+"_+=,.@-")) {
		p.bad(name, v, `Member must satisfy regular expression pattern: [\w+=,.@-]+`)
	}
	return v
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
