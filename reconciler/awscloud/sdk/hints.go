package sdk

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"

	"github.com/weir-gitops/weir/render/nearest"
)

// regions are those that AWS had at the time of this release. They are only for a hint:
// a region that is younger works as well.
var regions = strings.Fields(`
af-south-1 ap-east-1 ap-east-2 ap-northeast-1 ap-northeast-2 ap-northeast-3 ap-south-1 ap-south-2
ap-southeast-1 ap-southeast-2 ap-southeast-3 ap-southeast-4 ap-southeast-5 ap-southeast-6 ap-southeast-7
ca-central-1 ca-west-1 cn-north-1 cn-northwest-1 eu-central-1 eu-central-2 eu-north-1 eu-south-1 eu-south-2
eu-west-1 eu-west-2 eu-west-3 il-central-1 me-central-1 me-south-1 mx-central-1 sa-east-1
us-east-1 us-east-2 us-gov-east-1 us-gov-west-1 us-west-1 us-west-2`)

var regionOfHost = regexp.MustCompile(`\.([a-z]{2,4}(?:-[a-z]+)+-[0-9]+)\.(?:amazonaws\.com|amazonaws\.com\.cn|api\.aws|amazonaws\.eu)$`)

// noSuchHost says what an unknown host name most likely means; "" where err is another
// failure. A mistyped region is a host that does not exist.
func noSuchHost(err error) string {
	var dns *net.DNSError
	if !errors.As(err, &dns) || !dns.IsNotFound {
		return ""
	}
	name := strings.TrimSuffix(dns.Name, ".")
	found := regionOfHost.FindStringSubmatch(name)
	if found == nil {
		return fmt.Sprintf("there is no host %s: is the endpoint's address right, and does this machine's name server answer for it?", name)
	}
	text := fmt.Sprintf("there is no host %s: is there a region %q", name, found[1])
	if near := nearest.Word(found[1], regions); near != "" && near != found[1] {
		text += fmt.Sprintf(" (did you mean %q?)", near)
	}
	return text + ", and does this machine's name server answer for AWS?"
}

// withoutCredentials names the missing setting where no provider of the SDK has
// credentials: the last that it asks is the machine's own role.
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
