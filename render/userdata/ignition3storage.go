package userdata

import (
	"errors"
	"fmt"
	"path"

	v2 "github.com/flatcar/ignition/config/v2_3/types"
)

// toStorage3 converts the storage section to version 3, in which files have no file system. The mount point
// of a named file system becomes a prefix of their paths.
func toStorage3(in v2.Storage) (v3Storage, error) {
	out := v3Storage{Disks: append([]v2.Disk(nil), in.Disks...), Raid: in.Raid}
	for i, d := range in.Disks {
		out.Disks[i].Partitions = append([]v2.Partition(nil), d.Partitions...)
		for j, p := range d.Partitions {
			if p.Number == 0 && p.Label == nil {
				p.Number = j + 1 // version 3 requires a number or a label
			}
			out.Disks[i].Partitions[j] = p
		}
	}
	mounts := map[string]string{"root": "/"}
	for _, f := range in.Filesystems {
		if f.Mount == nil {
			if f.Path != nil {
				mounts[f.Name] = *f.Path
			}
			continue
		}
		if f.Mount.Create != nil {
			return out, fmt.Errorf("file system %s has create, which version 3 does not have", f.Name)
		}
		out.Filesystems = append(out.Filesystems, v3Filesystem{Device: f.Mount.Device, Format: f.Mount.Format, Label: f.Mount.Label,
			Options: f.Mount.Options, Path: f.Path, UUID: f.Mount.UUID, WipeFilesystem: f.Mount.WipeFilesystem})
		if f.Path != nil {
			mounts[f.Name] = *f.Path
		}
	}
	node := func(n v2.Node) (v3Node, error) {
		base, ok := mounts[n.Filesystem]
		if !ok {
			return v3Node{}, fmt.Errorf("%s is in the file system %s, which has no path", n.Path, n.Filesystem)
		}
		return v3Node{Path: path.Join(base, n.Path), Overwrite: n.Overwrite, User: n.User, Group: n.Group}, nil
	}
	return out, out.nodes(in, node)
}

// nodes adds the files, directories and links of a version 2 config. node converts their common fields. A
// file replaces an existing one by default, as in version 2.
func (s *v3Storage) nodes(in v2.Storage, node func(v2.Node) (v3Node, error)) error {
	for _, d := range in.Directories {
		n, err := node(d.Node)
		if err != nil {
			return err
		}
		s.Directories = append(s.Directories, v3Directory{v3Node: n, Mode: d.Mode})
	}
	for _, l := range in.Links {
		n, err := node(l.Node)
		if err != nil {
			return err
		}
		s.Links = append(s.Links, v3Link{v3Node: n, Hard: l.Hard, Target: l.Target})
	}
	for _, f := range in.Files {
		n, err := node(f.Node)
		if err != nil {
			return err
		}
		out := v3File{v3Node: n, Mode: f.Mode}
		contents := resource(f.Contents.Source, f.Contents.Compression, f.Contents.Verification)
		if f.Append {
			out.Append = []v3Resource{*contents}
		} else {
			out.Contents = contents
			if out.Overwrite == nil {
				out.Overwrite = truth() // version 2's default
			}
		}
		if err := s.addFile(out); err != nil {
			return err
		}
	}
	return nil
}

// addFile adds a file. Version 2 writes files with the same path one after the other, and version 3 forbids
// them. So the last one stays, with its appended contents.
func (s *v3Storage) addFile(f v3File) error {
	for i, old := range s.Files {
		if old.Path != f.Path {
			continue
		}
		if f.Contents == nil {
			s.Files[i].Append = append(s.Files[i].Append, f.Append...)
			return nil
		}
		if len(old.Append) > 0 {
			return errors.New(f.Path + " is written again after something was appended to it")
		}
		s.Files[i] = f
		return nil
	}
	s.Files = append(s.Files, f)
	return nil
}
