package observed

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/lazyregexp"
)

// UnknownName is a name in a manifest that AWS does not know.
type UnknownName struct {
	// Kind is one of the kinds below.
	Kind string
	Name string
}

// The kinds of resources that manifests name and weir does not make.
const (
	UnknownProfile   = "instance profile"
	UnknownKey       = "key pair"
	UnknownGroup     = "security group"
	unknownImage     = "image"
	unknownSubnet    = "subnet"
	unknownRole      = "role"
	unknownPlacement = "placement group"
)

func (u UnknownName) String() string { return u.Kind + " " + u.Name }

// unknownTexts matches messages of EC2 and IAM. Auto Scaling and EKS repeat them inside their own messages,
// all under one error code.
// Assumed of AWS: unknown-name-texts.
var unknownTexts = []struct {
	kind string
	text *lazyregexp.Regexp
}{
	{UnknownProfile, lazyregexp.New(`Value \(([^()]*)\) for parameter iamInstanceProfile\.(?:name|arn) is invalid`)},
	{UnknownKey, lazyregexp.New(`[Tt]he key pair '([^']*)' does not exist`)},
	{UnknownKey, lazyregexp.New(`KeyPair +(\S+) not found`)},
	{UnknownGroup, lazyregexp.New(`[Tt]he security group '([^']*)' does not exist`)},
	{unknownImage, lazyregexp.New(`[Tt]he image id '\[?([^'\]]*)\]?' does not exist`)},
	{unknownSubnet, lazyregexp.New(`[Tt]he subnet ID '([^']*)' does not exist`)},
	{unknownRole, lazyregexp.New(`[Tt]he role with name (\S+) cannot be found`)},
	{unknownPlacement, lazyregexp.New(`[Tt]he [Pp]lacement [Gg]roup '([^']*)' (?:is unknown|does not exist)`)},
}

// FindUnknownName returns the name that AWS does not know according to its message.
func FindUnknownName(message string) (UnknownName, bool) {
	for _, t := range unknownTexts {
		if m := t.text.FindStringSubmatch(message); m != nil {
			return UnknownName{Kind: t.kind, Name: m[1]}, true
		}
	}
	return UnknownName{}, false
}

// DiagnoseUnknownName returns a diagnostic for a refused step, at the field with the unknown name. If the
// named resource may have been created just now, it is a warning.
func DiagnoseUnknownName(pool *intent.Pool, e *Error) diag.Diagnostic {
	d := diag.Diagnostic{Severity: diag.Error, Code: "unknown-name", Summary: "AWS knows no " + e.Unknown.String(), Detail: diag.Hint("unknown-name")}
	if e.Kind == Transient {
		d.Severity, d.Summary = diag.Warning, d.Summary+" yet"
		d.Detail = "If it was created a moment ago, AWS needs up to two minutes to show it everywhere. Otherwise correct the name, or create it."
	}
	object, field := e.Unknown.Field(pool)
	d.Object, d.Field = object.String(), field.String()
	return d
}

// Field returns the field of the pool's manifests that contains the name, or no field if that is unknown.
func (u UnknownName) Field(pool *intent.Pool) (intent.ObjectRef, intent.Path) {
	n := pool.Nodegroup
	switch u.Kind {
	case UnknownProfile:
		return templateField(pool, "iamInstanceProfile")
	case UnknownKey:
		if n != nil && n.RemoteAccess != nil && n.RemoteAccess.EC2SSHKey == u.Name {
			return pool.Infrastructure, intent.Path{"spec", "remoteAccess", "sshKeyName"}
		}
		return templateField(pool, "sshKeyName")
	case unknownImage:
		return templateField(pool, "ami", "id")
	case UnknownGroup:
		return securityGroupField(pool, u.Name)
	case unknownSubnet:
		return pool.Infrastructure, intent.Path{"spec", "subnets"}
	case unknownRole:
		if n != nil {
			return pool.Infrastructure, intent.Path{"spec", "roleName"}
		}
	case unknownPlacement:
		if pool.Group != nil && pool.Group.Options.PlacementGroup == u.Name {
			return pool.Options, intent.Path{"spec", "autoScalingGroup", "placementGroup"}
		}
		return pool.Options, intent.Path{"spec", "launchTemplate", "placement", "groupName"}
	}
	return pool.Infrastructure, nil
}

// templateField returns the place of a field of the pool's launch template: in the pool, in the shared
// object to which it refers, or the name of its foreign template.
func templateField(pool *intent.Pool, path ...string) (intent.ObjectRef, intent.Path) {
	at := intent.Path{"spec", "awsLaunchTemplate"}.Join(path...)
	if f := pool.ForeignTemplate; f != nil {
		return pool.Infrastructure, f.NameField
	}
	if c := pool.LaunchConfig; c != nil {
		at, _ = c.Field(at)
		return c.Source, at
	}
	return pool.Infrastructure, at
}

// securityGroupField returns the place where the pool names a security group.
func securityGroupField(pool *intent.Pool, name string) (intent.ObjectRef, intent.Path) {
	n, t := pool.Nodegroup, pool.LaunchTemplate
	switch {
	case n != nil && n.RemoteAccess != nil && slices.Contains(n.RemoteAccess.SourceSecurityGroups, name):
		return pool.Infrastructure, intent.Path{"spec", "remoteAccess", "sourceSecurityGroups"}
	case pool.ForeignTemplate != nil, t != nil && slices.Contains(t.Data.SecurityGroupIDs, name):
		return templateField(pool, "additionalSecurityGroups")
	case t != nil && slices.ContainsFunc(t.Data.NetworkInterfaces, func(i intent.NetworkInterface) bool { return slices.Contains(i.Groups, name) }):
		return pool.Options, intent.Path{"spec", "launchTemplate", "networkInterfaces"}
	}
	return pool.Infrastructure, nil
}

// FieldNamed returns the field of the pool's own object with the name that AWS does not know, according to a
// failure's messages. It is nil if the messages name none.
func FieldNamed(pool *intent.Pool, words ...string) intent.Path {
	u, ok := FindUnknownName(strings.Join(words, " "))
	if !ok {
		return nil
	}
	object, field := u.Field(pool)
	if object != pool.Infrastructure {
		return nil
	}
	return field
}
