package sdk

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"sync"

	"github.com/weir-gitops/weir/reconciler/partition"
	"github.com/weir-gitops/weir/render/nearest"
)

// regionOfHost finds the region in the name of an AWS host, in any partition.
var regionOfHost = sync.OnceValue(func() *regexp.Regexp {
	var suffixes []string
	for _, p := range partition.All() {
		suffixes = append(suffixes, regexp.QuoteMeta(p.DNSSuffix), regexp.QuoteMeta(p.DualStackSuffix))
	}
	return regexp.MustCompile(`\.([a-z]{2,4}(?:-[a-z]+)+-[0-9]+)\.(?:` + strings.Join(suffixes, "|") + `)$`)
})

// noSuchHost returns the most likely cause of an unknown host name, such as a mistyped region. It returns an
// empty string for other errors.
func noSuchHost(err error) string {
	var dns *net.DNSError
	if !errors.As(err, &dns) || !dns.IsNotFound {
		return ""
	}
	name := strings.TrimSuffix(dns.Name, ".")
	found := regionOfHost().FindStringSubmatch(name)
	if found == nil {
		return fmt.Sprintf("host %s not found: check the endpoint's address, and this machine's name server", name)
	}
	text := fmt.Sprintf("host %s not found: check the region %q", name, found[1])
	if near := nearest.Word(found[1], partition.Regions()); near != "" && near != found[1] {
		text += fmt.Sprintf(" (did you mean %q?)", near)
	}
	return text + ", and this machine's name server"
}

// withoutCredentials names the missing setting if no provider of the SDK has credentials. The last provider
// is the machine's own role.
func withoutCredentials(cause string, missing *credentialsError) string {
	switch plain := noSuchHost(missing.err); {
	case plain != "":
		return plain
	case strings.Contains(cause, "EC2 IMDS"):
		return "no AWS credentials were found: log in with aws sso login or aws configure, choose a profile with AWS_PROFILE, or give this machine or pod a role (" + cause + ")"
	case strings.Contains(cause, "SSO session"):
		return "the login has ended: log in again with aws sso login (" + cause + ")"
	}
	return cause
}
