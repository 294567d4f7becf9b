package userdata

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// boundary separates the parts of the MIME document. It is constant, so that equal input results in equal
// bytes.
const boundary = "//"

// ErrBoundary means that a text of the user has a line that would end a part of the MIME document early.
var ErrBoundary = errors.New(`a line begins with "--` + boundary + `", which separates the parts of the document`)

// Nodeadm is the input of a NodeadmConfig, for Amazon Linux 2023 nodes.
type Nodeadm struct {
	CloudInit
	ClusterName string
	// APIServerEndpoint, CertificateAuthority (base64) and ServiceCIDR may be
	// placeholders.
	APIServerEndpoint    string
	CertificateAuthority string
	ServiceCIDR          string
	FeatureGates         map[string]bool
	// KubeletConfig and BaseRuntimeSpec are free-form. Nil omits them.
	KubeletConfig    any
	KubeletFlags     []string
	ContainerdConfig string
	BaseRuntimeSpec  any
	PreCommands      []string
}

// Text returns the MIME document. It returns an error if a text contains the boundary, or if a free-form
// value cannot be written as YAML.
func (n Nodeadm) Text() (string, error) {
	var d document
	d.WriteString("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"" + boundary + "\"\n\n")
	if len(n.PreCommands) > 0 {
		n.shellPart(&d)
	}
	if err := n.configPart(&d); err != nil {
		return "", err
	}
	if !n.empty() {
		n.cloudPart(&d)
	}
	d.WriteString("--")
	if n.holdsBoundary() {
		return "", ErrBoundary
	}
	return d.String(), nil
}

// shellPart writes the MIME part with the commands that run before nodeadm.
func (n Nodeadm) shellPart(d *document) {
	d.line(0, "--", boundary)
	d.line(0, `Content-Type: text/x-shellscript; charset="us-ascii"`)
	d.line(0, "MIME-Version: 1.0")
	d.line(0, "Content-Transfer-Encoding: 7bit")
	d.line(0, `Content-Disposition: attachment; filename="commands.sh"`)
	d.line(0)
	d.line(0, "#!/bin/bash")
	for _, option := range []string{"errexit", "pipefail", "nounset"} {
		d.line(0, "set -o ", option)
	}
	for _, c := range n.PreCommands {
		d.line(0, c)
	}
	d.line(0, "--", boundary)
	d.WriteByte('\n')
}

// configPart writes the MIME part with the NodeConfig, which nodeadm reads.
func (n Nodeadm) configPart(d *document) error {
	d.line(0, "--", boundary)
	d.line(0, "Content-Type: application/node.eks.aws")
	d.line(0)
	d.line(0, "---")
	d.line(0, "apiVersion: node.eks.aws/v1alpha1")
	d.line(0, "kind: NodeConfig")
	d.line(0, "spec:")
	d.line(2, "cluster:")
	d.line(4, "name: ", scalar(n.ClusterName))
	// These three are not quoted. They may be placeholders, and an endpoint, base64 and a CIDR block are
	// plain YAML.
	d.line(4, "apiServerEndpoint: ", n.APIServerEndpoint)
	d.line(4, "certificateAuthority: ", n.CertificateAuthority)
	d.line(4, "cidr: ", n.ServiceCIDR)
	if len(n.FeatureGates) > 0 {
		d.line(2, "featureGates:")
		for _, k := range slices.Sorted(maps.Keys(n.FeatureGates)) {
			d.line(4, mapKey(k), ": ", fmt.Sprint(n.FeatureGates[k]))
		}
	}
	if err := n.kubelet(d); err != nil {
		return err
	}
	if err := n.containerd(d); err != nil {
		return err
	}
	d.line(0)
	d.line(0, "--", boundary)
	return nil
}

// kubelet writes the kubelet section of the NodeConfig, or nothing if the pool sets none of its fields.
func (n Nodeadm) kubelet(d *document) error {
	if n.KubeletConfig == nil && len(n.KubeletFlags) == 0 {
		return nil
	}
	d.line(2, "kubelet:")
	if err := d.freeForm("config", n.KubeletConfig); err != nil {
		return err
	}
	if len(n.KubeletFlags) > 0 {
		d.line(4, "flags:")
		for _, f := range n.KubeletFlags {
			d.line(7, "- ", quoted(f))
		}
	}
	return nil
}

// containerd writes the containerd block. CAPA writes the TOML without a block indicator, which is invalid
// YAML. weir adds the indicator.
func (n Nodeadm) containerd(d *document) error {
	if n.ContainerdConfig == "" && n.BaseRuntimeSpec == nil {
		return nil
	}
	d.line(2, "containerd:")
	if n.ContainerdConfig != "" {
		if fitsBlock(n.ContainerdConfig) {
			d.line(4, "config: |")
			for _, l := range strings.Split(n.ContainerdConfig, "\n") {
				d.line(6, l)
			}
		} else {
			d.line(4, "config: ", quoted(n.ContainerdConfig))
		}
	}
	return d.freeForm("baseRuntimeSpec", n.BaseRuntimeSpec)
}

// freeForm writes a value of any form below key, with sorted keys, or nothing if it is nil.
func (d *document) freeForm(key string, value any) error {
	if value == nil {
		return nil
	}
	out, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	d.line(4, key, ":")
	text := string(out)
	if strings.Contains(text, "|+\n") || strings.Contains(text, "|2+\n") {
		// Line feeds at the end of the last text are part of it, and the blank line that CAPA adds would be
		// one of them.
		text = strings.TrimSuffix(text, "\n")
	}
	for _, l := range strings.Split(text, "\n") {
		d.line(6, l)
	}
	return nil
}

func (n Nodeadm) cloudPart(d *document) {
	d.line(0, "Content-Type: text/cloud-config")
	d.line(0, "MIME-Version: 1.0")
	d.line(0, "Content-Transfer-Encoding: 7bit")
	d.line(0, `Content-Disposition: attachment; filename="cloud-config.yaml"`)
	d.line(0)
	d.line(0, "#cloud-config")
	if len(n.Files) > 0 {
		d.line(0, "write_files:")
		d.files("  - ", n.Files)
	}
	d.modules(n.CloudInit)
	d.line(0, "--", boundary)
}

// holdsBoundary reports whether a text that is written without indentation contains the boundary.
func (n Nodeadm) holdsBoundary() bool {
	for _, c := range n.PreCommands {
		if strings.HasPrefix(c, "--"+boundary) || strings.Contains(c, "\n--"+boundary) {
			return true
		}
	}
	return false
}
