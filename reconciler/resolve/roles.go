package resolve

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// Codes of warnings about roles.
const (
	codeRoleDiffers   = "role-differs"
	codeRoleUnchecked = "role-unchecked"
)

// roleLookup answers lookups of an IAM role and of its properties.
type roleLookup struct{ *question }

// answer answers a lookup of an IAM role: its ARN, or a warning if its path, boundary or policies
// differ from the manifest.
func (q roleLookup) answer() observed.Answer {
	name, declared := q.Lookup.Name, q.Lookup.IDs
	if q.Lookup.Kind == intent.RolePolicies {
		return q.policies(name, intent.SplitList(declared))
	}
	r, a, ok := know(q.question, q.facts.roles.get(name), problem("role-not-found", "there is no IAM role "+name+" in this account"))
	switch {
	case q.Lookup.Kind == intent.Role && !ok:
		return a
	case q.Lookup.Kind == intent.Role:
		return observed.Answer{RoleARN: r.ARN}
	case !ok: // the lookup of the role reports the reason
		return observed.Answer{}
	case q.Lookup.Kind == intent.RolePath && r.Path != declared:
		return warning(codeRoleDiffers, "the IAM role "+name+" has the path "+r.Path+", and the manifest declares "+declared+
			"; a role keeps its path: write "+r.Path+", or make another role: aws iam create-role --role-name NAME --path "+declared+" --assume-role-policy-document file://trust.json")
	case q.Lookup.Kind == intent.RoleBoundary && r.Boundary != declared:
		has := "no permissions boundary"
		if r.Boundary != "" {
			has = "the permissions boundary " + r.Boundary
		}
		return warning(codeRoleDiffers, "the IAM role "+name+" has "+has+", and the manifest declares "+declared+
			"; run: aws iam put-role-permissions-boundary --role-name "+name+" --permissions-boundary "+declared)
	}
	return observed.Answer{}
}

// policies warns about policies that the manifest declares and that the role does not have.
func (q roleLookup) policies(name string, declared []string) observed.Answer {
	attached, unknown, ok := know(q.question, q.facts.rolePolicies.get(name), observed.Answer{})
	if !ok {
		if unknown.Problem != "" {
			return warning(codeRoleUnchecked, "weir cannot tell whether the IAM role "+name+" has the policies that the manifest declares: "+unknown.Problem)
		}
		return observed.Answer{} // no such role: the lookup of the role itself reports it
	}
	var commands, missing []string
	for _, arn := range declared {
		if !slices.Contains(attached, arn) {
			missing = append(missing, arn)
			commands = append(commands, "aws iam attach-role-policy --role-name "+name+" --policy-arn "+arn)
		}
	}
	if len(missing) == 0 {
		return observed.Answer{}
	}
	return warning(codeRoleDiffers, "the IAM role "+name+" does not have "+strings.Join(missing, " and ")+" attached, and weir attaches no policies; run: "+strings.Join(commands, " && "))
}

func warning(code, text string) observed.Answer { return observed.Answer{Code: code, Warning: text} }
