package derive

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// part is a part of a bootstrap configuration, with its size in bytes.
type part struct {
	at   intent.Path
	size int
}

// largestParts returns the largest parts of a configuration's user data, in descending order. It returns only
// sizes, because the content may be secret.
func (w *writer) largestParts(ref intent.ObjectRef) []part {
	var all []part
	add := func(size int, at ...string) {
		if size > 0 {
			all = append(all, part{path(append([]string{"spec"}, at...)...), size})
		}
	}
	files := func(list []kinds.File) {
		for i, f := range list {
			add(len(f.Content), "files", intent.Index(i), "content")
		}
	}
	commands := func(name string, list []string) {
		n := 0
		for _, c := range list {
			n += len(c)
		}
		add(n, name)
	}
	switch key := kinds.KeyOf(ref); ref.Kind {
	case "KubeadmConfig":
		if o, ok := w.index.KubeadmConfigs[key]; ok {
			files(o.Spec.Files)
			commands("bootCommands", o.Spec.BootCommands)
			commands("preKubeadmCommands", o.Spec.PreKubeadmCommands)
			commands("postKubeadmCommands", o.Spec.PostKubeadmCommands)
		}
	case "EKSConfig":
		if o, ok := w.index.EKSConfigs[key]; ok {
			files(o.Spec.Files)
			commands("preBootstrapCommands", o.Spec.PreBootstrapCommands)
			commands("postBootstrapCommands", o.Spec.PostBootstrapCommands)
			add(len(intent.Value(o.Spec.BootstrapCommandOverride)), "boostrapCommandOverride")
			add(len(intent.Value(o.Spec.DockerConfigJSON)), "dockerConfigJson")
		}
	case "NodeadmConfig":
		if o, ok := w.index.NodeadmConfigs[key]; ok {
			files(o.Spec.Files)
			commands("preNodeadmCommands", o.Spec.PreNodeadmCommands)
			if c := o.Spec.Containerd; c != nil {
				add(len(c.Config), "containerd", "config")
			}
		}
	}
	slices.SortFunc(all, sizeOrder)
	return all[:min(3, len(all))]
}

// userDataTooLarge reports user data above EC2's limit (UserData of RequestLaunchTemplateData: 16 KiB before
// base64) at its largest part.
func (w *writer) userDataTooLarge(d *draft, summary string) {
	f := kinds.Fault{Code: "user-data-too-large", Summary: summary,
		Detail: "move files out of it, to where the nodes fetch them", Ref: d.Bootstrap, Path: path("spec")}
	if parts := w.largestParts(d.Bootstrap); len(parts) > 0 {
		var sizes []string
		for _, p := range parts {
			sizes = append(sizes, fmt.Sprintf("%s with %d bytes", p.at, p.size))
			f.Related = append(f.Related, kinds.RelatedField{Ref: d.Bootstrap, Path: p.at, Message: fmt.Sprintf("%d bytes", p.size)})
		}
		f.Detail += "; the largest parts are " + strings.Join(sizes, ", ")
	}
	d.Faults.Add(f)
}
