package userdata

import (
	"errors"
	"fmt"
	"strings"

	v2 "github.com/flatcar/ignition/config/v2_3/types"
)

// The types below are the part of Ignition's configuration specification 3.0 to 3.4 that a version
// 2.3 document can use. Their members are optional, and absent ones are left out.
type v3Config struct {
	Ignition v3Ignition `json:"ignition"`
	Passwd   *v3Passwd  `json:"passwd,omitempty"`
	Storage  *v3Storage `json:"storage,omitempty"`
	Systemd  *v3Systemd `json:"systemd,omitempty"`
}

type v3Ignition struct {
	Config   *v3References  `json:"config,omitempty"`
	Proxy    *IgnitionProxy `json:"proxy,omitempty"`
	Security *v3Security    `json:"security,omitempty"`
	Timeouts *v2.Timeouts   `json:"timeouts,omitempty"`
	Version  string         `json:"version"`
}

type v3References struct {
	Merge   []v3Resource `json:"merge,omitempty"`
	Replace *v3Resource  `json:"replace,omitempty"`
}

type v3Security struct {
	TLS struct {
		CertificateAuthorities []v3Resource `json:"certificateAuthorities"`
	} `json:"tls"`
}

type v3Resource struct {
	Compression  string           `json:"compression,omitempty"`
	Source       string           `json:"source,omitempty"`
	Verification *v2.Verification `json:"verification,omitempty"`
}

type v3Passwd struct {
	Groups []v2.PasswdGroup `json:"groups,omitempty"`
	Users  []v2.PasswdUser  `json:"users,omitempty"`
}

type v3Storage struct {
	Directories []v3Directory  `json:"directories,omitempty"`
	Disks       []v2.Disk      `json:"disks,omitempty"`
	Files       []v3File       `json:"files,omitempty"`
	Filesystems []v3Filesystem `json:"filesystems,omitempty"`
	Links       []v3Link       `json:"links,omitempty"`
	Raid        []v2.Raid      `json:"raid,omitempty"`
}

type v3Node struct {
	Group     *v2.NodeGroup `json:"group,omitempty"`
	Overwrite *bool         `json:"overwrite,omitempty"`
	Path      string        `json:"path"`
	User      *v2.NodeUser  `json:"user,omitempty"`
}

type v3Directory struct {
	v3Node
	Mode *int `json:"mode,omitempty"`
}

type v3File struct {
	v3Node
	Append   []v3Resource `json:"append,omitempty"`
	Contents *v3Resource  `json:"contents,omitempty"`
	Mode     *int         `json:"mode,omitempty"`
}

type v3Link struct {
	v3Node
	Hard   bool   `json:"hard,omitempty"`
	Target string `json:"target"`
}

type v3Filesystem struct {
	Device         string           `json:"device"`
	Format         string           `json:"format"`
	Label          *string          `json:"label,omitempty"`
	Options        []v2.MountOption `json:"options,omitempty"`
	Path           *string          `json:"path,omitempty"`
	UUID           *string          `json:"uuid,omitempty"`
	WipeFilesystem bool             `json:"wipeFilesystem,omitempty"`
}

type v3Systemd struct {
	Units []v2.Unit `json:"units"`
}

// toVersion3 converts a version 2.3 document to version 3. It returns an error if version 3 cannot express a
// part of it.
func toVersion3(in v2.Config, o Ignition) (v3Config, error) {
	out := v3Config{Ignition: v3Ignition{Version: o.Version + ".0"}}
	later := o.Version != "3.0"
	switch {
	case !later && (o.Proxy != nil || len(o.CertificateAuthorities) > 0):
		return out, errors.New("a proxy and certificate authorities need version 3.1")
	case o.Proxy != nil:
		out.Ignition.Proxy = o.Proxy
	}
	out.Ignition.references(in.Ignition, o)
	storage, err := toStorage3(in.Storage)
	if err != nil {
		return out, err
	}
	for _, u := range in.Networkd.Units {
		if err := networkUnit(&storage, u); err != nil {
			return out, err
		}
	}
	if len(storage.Directories)+len(storage.Disks)+len(storage.Files)+len(storage.Filesystems)+len(storage.Links)+len(storage.Raid) > 0 {
		out.Storage = &storage
	}
	if out.Passwd, err = toPasswd3(in.Passwd); err != nil {
		return out, err
	}
	units, err := mergeUnits(in.Systemd.Units)
	if len(units) > 0 {
		out.Systemd = &v3Systemd{Units: units}
	}
	return out, err
}

// references adds the other configs, certificate authorities and timeouts of a version 2 config. The
// certificate authorities of o come first.
func (i *v3Ignition) references(in v2.Ignition, o Ignition) {
	if len(in.Config.Append) > 0 || in.Config.Replace != nil {
		i.Config = &v3References{}
	}
	for _, a := range in.Config.Append {
		i.Config.Merge = append(i.Config.Merge, *resource(a.Source, "", a.Verification))
	}
	if r := in.Config.Replace; r != nil {
		i.Config.Replace = resource(r.Source, "", r.Verification)
	}
	var authorities []v3Resource
	for _, source := range o.CertificateAuthorities {
		authorities = append(authorities, v3Resource{Source: source})
	}
	for _, a := range in.Security.CertificateAuthorities {
		authorities = append(authorities, *resource(a.Source, "", a.Verification))
	}
	if len(authorities) > 0 {
		i.Security = &v3Security{}
		i.Security.TLS.CertificateAuthorities = authorities
	}
	if in.Timeouts.HTTPResponseHeaders != nil || in.Timeouts.HTTPTotal != nil {
		i.Timeouts = &in.Timeouts
	}
}

func resource(source, compression string, v v2.Verification) *v3Resource {
	out := &v3Resource{Source: source, Compression: compression}
	if v.Hash != nil {
		out.Verification = &v
	}
	return out
}

// toPasswd3 converts users and groups to version 3 of Ignition. It returns nil without users and groups,
// and fails if version 3 cannot represent them.
func toPasswd3(in v2.Passwd) (*v3Passwd, error) {
	if len(in.Groups)+len(in.Users) == 0 {
		return nil, nil //nolint:nilnil // no users means no section
	}
	out := &v3Passwd{Groups: in.Groups}
	seen := map[string]bool{}
	for _, u := range in.Users {
		if u.Create != nil {
			return nil, fmt.Errorf("user %s has create, which version 3 does not have", u.Name)
		}
		if seen[u.Name] {
			return nil, fmt.Errorf("user %s is written twice", u.Name)
		}
		seen[u.Name] = true
		out.Users = append(out.Users, u)
	}
	return out, nil
}

// mergeUnits merges units with the same name. Version 2 combines their drop-ins, and version 3 forbids
// duplicates.
func mergeUnits(in []v2.Unit) ([]v2.Unit, error) {
	var out []v2.Unit
	at := map[string]int{}
	for _, u := range in {
		if u.Enable {
			u.Enable, u.Enabled = false, truth()
		}
		i, again := at[u.Name]
		if !again {
			at[u.Name] = len(out)
			out = append(out, u)
			continue
		}
		if u.Contents != "" {
			out[i].Contents = u.Contents
		}
		if u.Enabled != nil {
			out[i].Enabled = u.Enabled
		}
		out[i].Mask = out[i].Mask || u.Mask
		out[i].Dropins = append(append([]v2.SystemdDropin(nil), out[i].Dropins...), u.Dropins...)
	}
	for _, u := range out {
		seen := map[string]bool{}
		for _, d := range u.Dropins {
			if seen[d.Name] {
				return nil, fmt.Errorf("drop-in %s of unit %s is written twice", d.Name, u.Name)
			}
			seen[d.Name] = true
		}
	}
	return out, nil
}

// networkUnit adds a networkd unit as the file that version 2 would write.
func networkUnit(s *v3Storage, u v2.Networkdunit) error {
	const dir = "/etc/systemd/network/"
	mode, overwrite := 0o644, true
	file := func(at, contents string) error {
		return s.addFile(v3File{v3Node: v3Node{Path: at, Overwrite: &overwrite}, Mode: &mode, Contents: &v3Resource{Source: dataURL(contents)}})
	}
	if strings.Contains(u.Name, "/") {
		return fmt.Errorf("the network unit %s has a slash in its name", u.Name)
	}
	if u.Contents != "" {
		if err := file(dir+u.Name, u.Contents); err != nil {
			return err
		}
	}
	for _, d := range u.Dropins {
		if err := file(dir+u.Name+".d/"+d.Name, d.Contents); err != nil {
			return err
		}
	}
	return nil
}
