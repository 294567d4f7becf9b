package config

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/weir-gitops/weir/reconciler/target"
)

// ssmPrefix is a path of AWS Systems Manager below which names still have room:
// a parameter has at most 15 levels, of which a join token takes five.
var ssmPrefix = regexp.MustCompile(`^(/[A-Za-z0-9_.-]{1,100}){1,8}$`)

// joinTokens checks where join tokens are kept.
func (v *validator) joinTokens(at string, t *target.Target) {
	for i, prefix := range t.SSMPrefixes {
		at := fmt.Sprintf("%s.ssmPrefixes[%d]", at, i)
		if why, wayOut := SSMPrefixFault(prefix); why != "" {
			v.fault(at, "bad-value", wayOut, "%s", why)
		}
	}
}

// SSMPrefixFault says why weir cannot keep parameters below a prefix and what to
// write, "" where it can.
func SSMPrefixFault(prefix string) (why, wayOut string) {
	root := strings.ToLower(strings.TrimPrefix(prefix, "/"))
	switch {
	case !ssmPrefix.MatchString(prefix):
		return fmt.Sprintf("%q is no prefix of parameters", prefix),
			"write it like /weir: up to eight parts of letters, digits, dots, dashes and underscores, each after a slash, and none at the end"
	case strings.HasPrefix(root, "aws") || strings.HasPrefix(root, "ssm"):
		return "AWS keeps names that begin with aws or ssm for itself", "write another one, such as /weir"
	}
	return "", ""
}
