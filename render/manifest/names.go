package manifest

import (
	"strings"

	"golang.org/x/crypto/blake2b"
)

// Longest names that CAPA generates, one more than the last that fits.
const (
	maxNodegroupName = 64
	maxClusterName   = 100
)

// defaultNodeRole is the role of a nodegroup whose manifest names none.
const defaultNodeRole = "eks-nodegroup.cluster-api-provider-aws.sigs.k8s.io"

// eksName generates a name as CAPA does: namespace and name joined by an
// underscore, dots in the name replaced, and hashed where that is too long.
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
