// Command krusty builds the kustomization in a directory with kustomize's own library, of the version that weir uses, and
// prints it. make bench-peers compares weir with it: a program that does nothing else starts as fast as it can.
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("krusty DIRECTORY: got %d arguments", len(args))
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), args[0])
	if err != nil {
		return err
	}
	text, err := built.AsYaml()
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}
