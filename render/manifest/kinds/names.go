package kinds

import (
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/render/strict"
	"golang.org/x/crypto/blake2b"
)

// idDigits matches the part of an EC2 resource id after the prefix: 17 hexadecimal digits, or 8 for resources
// made before 2018 ("Resource IDs" in the user guide of EC2).
var idDigits = lazyregexp.New(`^([0-9a-f]{8}|[0-9a-f]{17})$`)

// CheckID reports an id that does not have the form of its kind.
func CheckID(r Reporter, p intent.Path, id, prefix string) {
	if f, bad := noID(p, id, prefix); bad {
		r.Error(p, f.Code, f.Summary, f.Detail)
	}
}

func noID(p intent.Path, id, prefix string) (strict.Fault, bool) {
	digits, begins := strings.CutPrefix(id, prefix)
	return strict.Fault{Code: "bad-id", Summary: fmt.Sprintf("%s is %q, which is not an id of its kind", p, id), Detail: fmt.Sprintf("such an id is %s and 8 or 17 hexadecimal digits", prefix)}, !begins || !idDigits.MatchString(digits)
}

// MaxTemplateName is the maximum length of a launch template's name.
const MaxTemplateName = intent.MaxTemplateName

// Limits for the length of names that CAPA generates. A name must be shorter than the limit.
const (
	maxNodegroupName = 64
	maxClusterName   = 100
)

// DefaultNodeRole is the role of a nodegroup whose manifest names no role.
const DefaultNodeRole = "eks-nodegroup.cluster-api-provider-aws.sigs.k8s.io"

// eksName generates a name like CAPA: namespace, underscore and name, with dots in the name replaced. A name
// that is too long is hashed.
func eksName(namespace, name string, limit int) string {
	const prefix = "capa_"
	full := namespace + "_" + strings.ReplaceAll(name, ".", "_")
	if len(full) < limit {
		return full
	}
	h, err := blake2b.New(32-len(prefix), nil)
	if err != nil {
		panic("manifest: blake2b has no such size: " + err.Error())
	}
	h.Write([]byte(full))
	var b strings.Builder
	b.WriteString(prefix)
	for _, c := range h.Sum(nil) {
		b.WriteByte("0123456789abcdefghijklmnopqrstuvwxyz"[int(c)%36])
	}
	return b.String()
}

// CheckARN reports a string that is not an ARN.
func CheckARN(r Reporter, at intent.Path, arn string) {
	if f, bad := noARN(at, arn); bad {
		r.Error(at, f.Code, f.Summary, f.Detail)
	}
}

func noARN(at intent.Path, arn string) (strict.Fault, bool) {
	return strict.Fault{Code: "bad-value", Summary: fmt.Sprintf("%s is %q, which is not an ARN", at, arn), Detail: "an ARN begins with arn:"}, arn != "" && !strings.HasPrefix(arn, "arn:")
}

// TemplateName matches the names of launch templates, according to EC2's API reference. weir itself makes
// names of up to MaxTemplateName characters.
var TemplateName = lazyregexp.New(`^[a-zA-Z0-9().\-/_]{3,128}$`)

// Tag keys of CAPA and of the AWS cloud provider.
const (
	TagCAPACluster  = "sigs.k8s.io/cluster-api-provider-aws/cluster/"
	TagCAPARole     = "sigs.k8s.io/cluster-api-provider-aws/role"
	TagCloudCluster = "kubernetes.io/cluster/"
)

// NodegroupName returns the name that CAPA generates for the nodegroup of an infrastructure pool.
func NodegroupName(pool intent.Key) string {
	return eksName(pool.Namespace, pool.Name, maxNodegroupName)
}
