// Command hyperkube is a whole Kubernetes in one binary: etcd, the control plane, the node's
// agents, CoreDNS, kubectl, and the host agent of the local cluster. Which one runs is the base name the
// binary was called by, or else its first argument.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"torchkeeper/deploy/local/hyperkube/agent"
)

// A part takes over the process; os.Args already reads as if the part were its own binary.
type part func() int

func command(newCommand func() *cobra.Command) part {
	return func() int { return cli.Run(newCommand()) }
}

func parts() map[string]part {
	return map[string]part{
		"etcd": func() int {
			etcdmain.Main(os.Args)
			return 0
		},
		"kube-apiserver":          command(app.NewAPIServerCommand),
		"kube-controller-manager": command(controllermanager.NewControllerManagerCommand),
		"kube-scheduler": command(func() *cobra.Command {
			return scheduler.NewSchedulerCommand()
		}),
		"kube-proxy": command(proxy.NewProxyCommand),
		"kubelet": command(func() *cobra.Command {
			return kubelet.NewKubeletCommand(context.Background())
		}),
		"coredns":    runDNS,
		"kubectl":    runKubectl,
		"host-agent": runHostAgent,
	}
}

// kubectl prints its errors itself, without a usage text after each of them.
func runKubectl() int {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
		return 1
	}
	return 0
}

func runHostAgent() int {
	if err := agent.Run(genericapiserver.SetupSignalContext(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "host-agent:", err)
		return 1
	}
	return 0
}

func main() {
	hideDNSFlags()
	all := parts()
	name := filepath.Base(os.Args[0])
	run, ok := all[name]
	if !ok && len(os.Args) > 1 {
		name = os.Args[1]
		if run, ok = all[name]; ok {
			os.Args = os.Args[1:]
		}
	}
	if !ok {
		names := make([]string, 0, len(all))
		for n := range all {
			names = append(names, n)
		}
		sort.Strings(names)
		fmt.Fprintf(os.Stderr, "usage: hyperkube PART [ARGUMENT...]\nparts: %s\n", strings.Join(names, " "))
		os.Exit(2)
	}
	os.Exit(run())
}
