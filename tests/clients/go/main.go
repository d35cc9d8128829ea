// Clients are programs as they are written against Kubernetes, on current client-go and
// controller-runtime, that judge the API server which they are pointed at: a kube-apiserver, ours,
// or any other. Nothing in them knows which one it is.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"holdfast.example/tests/clients/check"
	"holdfast.example/tests/clients/checks/controller"
	"holdfast.example/tests/clients/checks/election"
	"holdfast.example/tests/clients/checks/everyday"
	"holdfast.example/tests/clients/checks/expiry"
	"holdfast.example/tests/clients/checks/informers"
	"holdfast.example/tests/clients/checks/watches"
)

// checks in the order in which they begin: first the one that takes longest, because it waits, then
// the heavy ones, and last those whose leaders must renew their leases in time.
var checks = slices.Concat(
	[]check.Check{
		expiry.Check,
		informers.ConfigMaps,
		watches.Check,
		informers.Pods,
	},
	everyday.Checks,
	[]check.Check{
		election.Check,
		controller.Check,
	},
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

func run() error {
	// A set of its own: controller-runtime adds to the common one.
	flags := flag.NewFlagSet("clients", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "file that names the server (default: $KUBECONFIG)")
	pick := flags.String("run", "", "regular expression: only checks whose names match")
	list := flags.Bool("list", false, "print the names of the checks and end")
	seed := flags.Uint64("seed", 1, "what the writers' random choices begin with")
	parallel := flags.Int("parallel", 3, "how many checks run at the same time")
	patience := flags.Duration("timeout", 10*time.Minute, "the most that a check may take")
	keeps := flags.Duration("history-min", time.Minute, "how long the server keeps each change")
	forgets := flags.Duration("history-max", 80*time.Second,
		"how long it may keep one, however many there are")
	source := flags.String("witness", "",
		"file that names the server which the judged one is a replica of: the truth is watched there, "+
			"and the replica may leave out states that were replaced before it told them")
	during := flags.Duration("during", 0,
		"how long the checks named followed-… write to the witness; without, they are left out")
	logs := flags.Bool("logs", false, "show what client-go logs")
	if err := flags.Parse(os.Args[1:]); err != nil {
		return err
	}

	picked, err := regexp.Compile(*pick)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	all := checks
	if *list {
		for _, check := range slices.Concat(all, informers.Followed) {
			fmt.Println(check.Name)
		}
		return nil
	}
	if !*logs {
		klog.SetLogger(logr.Discard())
	}
	log.SetLogger(klog.Background())
	config, err := configOf(*kubeconfig)
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	var witness *rest.Config
	if *source != "" {
		if witness, err = configOf(*source); err != nil {
			return fmt.Errorf("-witness: %w", err)
		}
	}
	if *during > 0 {
		if witness == nil {
			return errors.New("-during needs -witness: the checks write there")
		}
		all = slices.Concat(all, informers.Followed)
	}

	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	printer := &check.Printer{Out: os.Stdout}
	suite := check.Suite{
		Checks:     all,
		Pick:       picked,
		Parallel:   *parallel,
		Patience:   *patience,
		HistoryMin: *keeps,
		HistoryMax: *forgets,
		Seed:       *seed,
		Config:     config,
		Witness:    witness,
		During:     *during,
		Printer:    printer,
	}
	began := time.Now()
	fmt.Printf("seed %d, server %s\n", *seed, config.Host)
	suite.Run(ctx)
	counts := printer.Counts()
	fmt.Printf("%s in %.0f s\n", counts, time.Since(began).Seconds())
	switch {
	case counts.Failed > 0:
		return fmt.Errorf("%d failed", counts.Failed)
	case counts.OK == 0:
		return fmt.Errorf("no check is named like %q", *pick)
	}
	return nil
}

// configOf reads a kubeconfig, as kubectl finds it.
func configOf(path string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		rules, &clientcmd.ConfigOverrides{}).ClientConfig()
}
