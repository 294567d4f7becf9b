//go:build ignore

// This program writes table.txt from the instance types in the AWS SDK.
package main

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

func main() {
	sizes := map[string][]string{}
	var families []string
	for _, t := range types.InstanceType("").Values() {
		family, size, ok := strings.Cut(string(t), ".")
		if !ok {
			log.Fatalf("%q is not a family and size", t)
		}
		if sizes[family] == nil {
			families = append(families, family)
		}
		sizes[family] = append(sizes[family], size)
	}
	slices.Sort(families)
	var out bytes.Buffer
	for _, f := range families {
		fmt.Fprintln(&out, f, strings.Join(sizes[f], " "))
	}
	if err := os.WriteFile("table.txt", out.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}
