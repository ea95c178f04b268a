"""Environments of WMRL; importing this package registers their Gymnasium ids.

Registration is by string, so importing costs nothing and needs no simulator.
"""

import gymnasium as gym

gym.register(
    id="WMRL-LIBERO",
    entry_point="wmrl_envs.libero.env:LiberoEnv",
    vector_entry_point="wmrl_envs.vector:make_libero",
    # Stable-Baselines3 refuses text at the top level of an observation.
    kwargs={"instruction": "nested"},
)
gym.register(id="WMRL-MicroPick", entry_point="wmrl_envs.micro.pick:MicroPickEnv")
gym.register(id="WMRL-MicroQuiz", entry_point="wmrl_envs.micro.quiz:MicroQuizEnv")
gym.register(id="WMRL-AutoResearch", entry_point="wmrl_envs.autoresearch.env:AutoResearchEnv")
gym.register(id="WMRL-MLEDojo", entry_point="wmrl_envs.mledojo.env:MLEDojoEnv")
gym.register(id="WMRL-DSBench", entry_point="wmrl_envs.dsbench.env:DSBenchEnv")
